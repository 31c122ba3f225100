#!/usr/bin/env python3
"""Reads the files of `stallwatch export` with independent readers and checks the stalled time.

    Tests/Programs/read-profiles.py DIRECTORY MICROSECONDS FUNCTION FUNCTION-MICROSECONDS

DIRECTORY has the files collapsed, pprof and firefox, one per format, all from the same reports.
MICROSECONDS is their stalled time, FUNCTION-MICROSECONDS the time of all stacks with FUNCTION on them.

collapsed   gprof2dot's parser (PyPI)
pprof       Google's protobuf (Debian: python3-protobuf), with a descriptor made here; then the rules that pprof's own
            reader checks
firefox     the fields as the Firefox Profiler documents them

Exit status: 0 if all checks pass, 1 if one fails (prints the fault), 64 for a wrong argument, 69 without a reader.
"""

import gzip
import json
import pathlib
import sys

from checks import Fault, begin_again, equal, expect

try:
    import gprof2dot
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as missing:
    begin_again(missing)


def check_collapsed(path, total, function, function_total):
    with open(path, encoding="utf-8") as file:
        profile = gprof2dot.CollapseParser(file).parse()
    equal(profile[gprof2dot.SAMPLES], total, "the weight of all stacks")
    equal(profile.functions[function][gprof2dot.TOTAL_SAMPLES], function_total, f"the weight of {function}")


# google/pprof, proto/profile.proto: the messages' fields by number. u and i are uint64 and int64, s string, b bool; [] a list.
PROFILE_PROTO = {
    "Profile": {
        1: ("sample_type", "[ValueType]"), 2: ("sample", "[Sample]"), 3: ("mapping", "[Mapping]"),
        4: ("location", "[Location]"), 5: ("function", "[Function]"), 6: ("string_table", "[s]"), 7: ("drop_frames", "i"),
        8: ("keep_frames", "i"), 9: ("time_nanos", "i"), 10: ("duration_nanos", "i"), 11: ("period_type", "ValueType"),
        12: ("period", "i"), 13: ("comment", "[i]"), 14: ("default_sample_type", "i"),
    },
    "ValueType": {1: ("type", "i"), 2: ("unit", "i")},
    "Sample": {1: ("location_id", "[u]"), 2: ("value", "[i]"), 3: ("label", "[Label]")},
    "Label": {1: ("key", "i"), 2: ("str", "i"), 3: ("num", "i"), 4: ("num_unit", "i")},
    "Mapping": {
        1: ("id", "u"), 2: ("memory_start", "u"), 3: ("memory_limit", "u"), 4: ("file_offset", "u"), 5: ("filename", "i"),
        6: ("build_id", "i"), 7: ("has_functions", "b"), 8: ("has_filenames", "b"), 9: ("has_line_numbers", "b"),
        10: ("has_inline_frames", "b"),
    },
    "Location": {
        1: ("id", "u"), 2: ("mapping_id", "u"), 3: ("address", "u"), 4: ("line", "[Line]"), 5: ("is_folded", "b"),
    },
    "Line": {1: ("function_id", "u"), 2: ("line", "i"), 3: ("column", "i")},
    "Function": {1: ("id", "u"), 2: ("name", "i"), 3: ("system_name", "i"), 4: ("filename", "i"), 5: ("start_line", "i")},
}


def profile_class():
    field = descriptor_pb2.FieldDescriptorProto
    types = {"u": field.TYPE_UINT64, "i": field.TYPE_INT64, "s": field.TYPE_STRING, "b": field.TYPE_BOOL}
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in PROFILE_PROTO.items():
        message = file.message_type.add(name=name)
        for number, (label, kind) in fields.items():
            entry = message.field.add(name=label, number=number, label=field.LABEL_OPTIONAL)
            if kind.startswith("["):
                entry.label = field.LABEL_REPEATED
                kind = kind[1:-1]
            if kind in types:
                entry.type = types[kind]
            else:
                entry.type = field.TYPE_MESSAGE
                entry.type_name = f".perftools.profiles.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("perftools.profiles.Profile")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def check_pprof(path, total, function, function_total):
    profile = profile_class()()
    contents = gzip.decompress(path.read_bytes())
    equal(profile.ParseFromString(contents), len(contents), "the number of bytes read")
    size = profile.ByteSize()
    profile.DiscardUnknownFields()
    equal(profile.ByteSize(), size, "the size without unknown fields")
    strings = profile.string_table
    equal(strings[0], "", "the first string")
    equal(len(set(strings)), len(strings), "the number of different strings")
    types = [(strings[each.type], strings[each.unit]) for each in profile.sample_type]
    equal(types, [("stalls", "count"), ("stalled", "microseconds")], "the sample types")
    equal(strings[profile.default_sample_type], "stalled", "the default sample type")
    mappings = {each.id: each for each in profile.mapping}
    functions = {each.id: each for each in profile.function}
    locations = {each.id: each for each in profile.location}
    for name, found, every in [
        ("mapping", mappings, profile.mapping), ("function", functions, profile.function),
        ("location", locations, profile.location),
    ]:
        equal(len(found), len(every), f"the number of {name} ids")
        expect(0 not in found, f"a {name} has the id 0")
    for location in profile.location:
        expect(location.mapping_id == 0 or location.mapping_id in mappings, "a location is in no mapping")
        expect(location.line, "a location has no line")
        expect(all(line.function_id in functions for line in location.line), "a line has no function")
        if location.mapping_id:
            mapping = mappings[location.mapping_id]
            expect(mapping.memory_start <= location.address < mapping.memory_limit, "an address is not in its mapping")
    found = 0
    for sample in profile.sample:
        equal(len(sample.value), 2, "the number of a sample's values")
        expect(sample.location_id and all(each in locations for each in sample.location_id), "a sample has no stack")
        equal([strings[label.key] for label in sample.label], ["process", "loop", "kind", "cause"], "the labels")
        names = {
            strings[functions[line.function_id].name] for each in sample.location_id for line in locations[each].line
        }
        found += sample.value[1] if function in names else 0
    equal(sum(sample.value[1] for sample in profile.sample), total, "the stalled time of all samples")
    equal(found, function_total, f"the stalled time of {function}")


def column(table, name, check, where):
    """Checks that a table's column has the right length and only valid values."""
    expect(isinstance(table.get(name), list), f"{where}.{name} is missing")
    equal(len(table[name]), table["length"], f"the length of {where}.{name}")
    for value in table[name]:
        expect(check(value), f"{where}.{name} has {value!r}")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def below(count):
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def optional(check):
    return lambda value: value is None or check(value)


def check_firefox(path, total, function, function_total):
    file = json.loads(path.read_bytes())
    meta = file["meta"]
    equal(meta["preprocessedProfileVersion"], 70, "the version")
    for name, kind in {
        "interval": (int, float), "startTime": (int, float), "processType": int, "product": str, "version": int,
        "symbolicated": bool, "symbolicationNotSupported": bool,
    }.items():
        expect(isinstance(meta[name], kind), f"meta.{name} is {meta[name]!r}")
    expect(meta["stackwalk"] in (0, 1), "meta.stackwalk")
    colours = {
        "transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred",
        "darkgrey", "grey",
    }
    for category in meta["categories"]:
        expect(category["color"] in colours and category["subcategories"][0] == "Other", f"the category {category}")
    expect(any(category["color"] == "grey" for category in meta["categories"]), "no category is grey")
    schemas = {schema["name"]: {field["key"] for field in schema["fields"]} for schema in meta["markerSchema"]}
    for library in file["libs"]:
        expect(all(isinstance(library[name], str) for name in [
            "arch", "name", "path", "debugName", "debugPath", "breakpadId"]), f"the library {library}")
        expect(optional(lambda value: isinstance(value, str))(library["codeId"]), f"the library {library}")

    shared = file["shared"]
    strings = shared["stringArray"]
    expect(all(isinstance(string, str) for string in strings), "a string is none")
    text = below(len(strings))
    resources, functions, frames = shared["resourceTable"], shared["funcTable"], shared["frameTable"]
    stacks, sources, locations = shared["stackTable"], shared["sources"], shared["sourceLocationTable"]
    line = optional(lambda value: isinstance(value, int) and value > 0)
    for table, name, columns in [
        (resources, "resourceTable", {
            "name": text, "host": optional(text), "type": below(6),
        }),
        (sources, "sources", {
            "id": optional(lambda value: isinstance(value, str)), "filename": text, "startLine": line, "startColumn": line,
            "sourceMapURL": optional(text), "content": optional(lambda value: isinstance(value, str)),
        }),
        (locations, "sourceLocationTable", {"source": below(sources["length"]), "line": line, "column": line}),
        (functions, "funcTable", {
            "name": text, "isJS": lambda value: value is False, "relevantForJS": lambda value: value is False,
            "resource": lambda value: value == -1 or below(resources["length"])(value),
            "source": optional(below(sources["length"])), "lineNumber": line, "columnNumber": line,
            "originalLocation": optional(below(locations["length"])),
        }),
        (frames, "frameTable", {
            "address": lambda value: isinstance(value, int) and value >= -1, "inlineDepth": below(1 << 16),
            "lib": lambda value: value == -1 or below(len(file["libs"]))(value),
            "category": optional(below(len(meta["categories"]))), "subcategory": optional(below(1)),
            "func": below(functions["length"]), "nativeSymbol": lambda value: value is None,
            "innerWindowID": optional(below(1)), "line": line, "column": line,
            "originalLocation": optional(below(locations["length"])),
        }),
        (stacks, "stackTable", {"frame": below(frames["length"]), "prefixOffset": below(stacks["length"])}),
        (shared["nativeSymbols"], "nativeSymbols", {"libIndex": text, "address": text, "name": text, "functionSize": text}),
    ]:
        for label, check in columns.items():
            column(table, label, check, name)
    for stack, offset in enumerate(stacks["prefixOffset"]):
        expect(offset <= stack, "the callers of a stack are before the first stack")
    # The stacks that have the function on them.
    has = []
    for stack, (frame, offset) in enumerate(zip(stacks["frame"], stacks["prefixOffset"])):
        own = strings[functions["name"][frames["func"][frame]]] == function
        has.append(own or (offset > 0 and has[stack - offset]))
    sum_of_all = found = 0
    for number, thread in enumerate(file["threads"]):
        where = f"threads[{number}]"
        for name, kind in {"name": str, "pid": str, "processType": str, "isMainThread": bool, "pausedRanges": list}.items():
            expect(isinstance(thread[name], kind), f"{where}.{name} is {thread[name]!r}")
        expect(isinstance(thread["tid"], (int, str)), f"{where}.tid")
        for name in ["processStartupTime", "registerTime"]:
            expect(is_number(thread[name]), f"{where}.{name}")
        for name in ["processShutdownTime", "unregisterTime"]:
            expect(optional(is_number)(thread[name]), f"{where}.{name}")
        samples, markers = thread["samples"], thread["markers"]
        equal(samples["weightType"], "tracing-ms", f"{where}.samples.weightType")
        for name, check in {"stack": optional(below(stacks["length"])), "time": is_number, "weight": is_number}.items():
            column(samples, name, check, f"{where}.samples")
        equal(samples["time"], sorted(samples["time"]), f"the order of {where}.samples.time")
        for name, check in {
            "name": text, "startTime": is_number, "endTime": is_number, "phase": lambda value: value == 1,
            "category": below(len(meta["categories"])),
            "data": lambda value: set(value) - {"type"} <= schemas[value["type"]],
        }.items():
            column(markers, name, check, f"{where}.markers")
        for stack, weight in zip(samples["stack"], samples["weight"]):
            sum_of_all += weight
            found += weight if has[stack] else 0
    equal(round(sum_of_all * 1000), total, "the sum of the weights")
    equal(round(found * 1000), function_total, f"the weight of {function}")


def main(arguments):
    if len(arguments) != 4:
        print(__doc__, file=sys.stderr)
        return 64
    directory, total, function, function_total = arguments
    status = 0
    for name, check in {"collapsed": check_collapsed, "pprof": check_pprof, "firefox": check_firefox}.items():
        try:
            check(pathlib.Path(directory) / name, int(total), function, int(function_total))
            print(f"{name}: read")
        except (Fault, KeyError, TypeError, ValueError) as fault:
            print(f"{name}: {type(fault).__name__}: {str(fault)[:600]}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
