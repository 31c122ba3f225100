/// The published schema of stall reports, which is built into the tool.
enum ReportSchema {
    /// - Throws: ``JSONSchema/Unsupported`` or ``JSONFault``, if the schema has outgrown what the tool understands.
    static func checker() throws -> SchemaChecker {
        try SchemaChecker(schema: JSONValue(json: PackageResources.stall_report_schema_json))
    }
}
