@_exported public import StallReports
