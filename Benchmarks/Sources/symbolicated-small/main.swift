import SymbolicatedStack

// A small program: what the package manager makes of this and what it needs.
printSymbolicatedStack()
