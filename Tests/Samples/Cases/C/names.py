# names.py KIND N: a library with a function whose name is of that kind, and N deep
import sys

kind, n = sys.argv[1], int(sys.argv[2])


def substitution(number):  # the one with that number after S_
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    text = ""
    while True:
        text = digits[number % 36] + text
        number //= 36
        if number == 0:
            return "S" + text + "_"


def bomb():  # a C++ template whose name doubles in length with each level
    pair = "S_IiiE"
    for level in range(2, n + 1):
        pair = "S_I" + pair + substitution(level - 2) + "E"
    return "_Z6layOutP4PairI" + pair[len("S_I"):]


names = {
    "bomb": bomb,
    # a generic Swift type in itself
    "swift": lambda: "Xs4deep10layOutDeepyyAA1WOy" + "ADy" * (n - 1) + "Si" + "G" * n + "mF",
    # a C++ function in a deeply nested namespace: a valid mangled name of n levels
    "long": lambda: "_ZN" + "5level" * n + "4workEv",
}
hidden = '__attribute__((visibility("hidden"))) ' if kind == "swift" else ""
print(
    f"""#include "common.h"
{hidden}NOINLINE void work(void) __asm__("{names[kind]()}");
void work(void) {{ SPIN(600); sink++; }}
void run(void) {{ work(); sink++; }}"""
)
