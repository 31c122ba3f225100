internal import CLinux

/// Returns whether the file at a path gives capabilities to the program that it is (setcap(8)).
package func hasFileCapabilities(_ path: String) -> Bool { clinux_has_file_capabilities(path) }
