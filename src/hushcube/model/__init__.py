"""The frozen nouns: schema, workload, privacy, noise laws, tables, measurements. No input, no output."""
