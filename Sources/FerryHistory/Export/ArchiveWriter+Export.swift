extension ArchiveWriter: ExportSink {}
