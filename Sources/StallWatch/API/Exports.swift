@_exported public import StallReports
@_exported public import StallSymbols
