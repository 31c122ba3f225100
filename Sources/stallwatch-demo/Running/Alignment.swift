/// The side of a column at which its text begins.
enum Alignment {
    case left, right
}
