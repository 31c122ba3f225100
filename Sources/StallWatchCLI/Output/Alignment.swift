import Glibc

/// The side of a column that text is aligned to.
enum Alignment {
    case left, right
}
