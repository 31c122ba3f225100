import Glibc

/// The side of a column that text is aligned to.
package enum Alignment {
    case left, right
}
