import SymbolicatedStack

// A small program: this file and its dependencies.
printSymbolicatedStack()
