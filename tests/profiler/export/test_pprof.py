"""The profile for pprof, read back by the protobuf package from the published field numbers."""

import gzip
import itertools

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from bsplib.profiler import format as fmt
from bsplib.profiler.export import pprof

# profile.proto of github.com/google/pprof: number, name and type of each field; * repeated.
PROTO = {
    "Profile": "1 sample_type *ValueType, 2 sample *Sample, 3 mapping *Mapping, "
    "4 location *Location, 5 function *Function, 6 string_table *string, 7 drop_frames int64, "
    "8 keep_frames int64, 9 time_nanos int64, 10 duration_nanos int64, 11 period_type ValueType, "
    "12 period int64, 13 comment *int64, 14 default_sample_type int64",
    "ValueType": "1 type int64, 2 unit int64",
    "Sample": "1 location_id *uint64, 2 value *int64, 3 label *Label",
    "Label": "1 key int64, 2 str int64, 3 num int64, 4 num_unit int64",
    "Mapping": "1 id uint64, 2 memory_start uint64, 3 memory_limit uint64, 4 file_offset uint64, "
    "5 filename int64, 6 build_id int64, 7 has_functions bool, 8 has_filenames bool, "
    "9 has_line_numbers bool, 10 has_inline_frames bool",
    "Location": "1 id uint64, 2 mapping_id uint64, 3 address uint64, 4 line *Line, "
    "5 is_folded bool",
    "Line": "1 function_id uint64, 2 line int64",
    "Function": "1 id uint64, 2 name int64, 3 system_name int64, 4 filename int64, "
    "5 start_line int64",
}


def message_class():
    """The class of a Profile, made from the numbers of its fields."""
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", syntax="proto3")
    file.package = "perftools.profiles"
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in PROTO.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            number, label, kind = field.split()
            made = message.field.add(name=label, number=int(number))
            made.label = kinds.LABEL_REPEATED if kind[0] == "*" else kinds.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            if kind in PROTO:
                made.type, made.type_name = kinds.TYPE_MESSAGE, f".perftools.profiles.{kind}"
            else:
                made.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("perftools.profiles.Profile")
    return message_factory.GetMessageClass(found)


PROFILE = message_class()


def read(exported):
    profile = PROFILE()
    profile.ParseFromString(gzip.decompress(exported.bytes("pprof")))
    return profile


@pytest.mark.parametrize("name", ["broadcast", "hostile", "tree", "empty"])
def test_the_profile_is_valid_by_the_rules_of_its_format(name, request):
    profile = read(request.getfixturevalue(name))
    texts = profile.string_table
    assert texts[0] == ""
    assert len(set(texts)) == len(texts)
    functions = {function.id: function for function in profile.function}
    locations = {location.id: location for location in profile.location}
    mappings = {mapping.id for mapping in profile.mapping}
    assert 0 not in functions.keys() | locations.keys() | mappings
    assert len(functions) == len(profile.function)
    assert len(locations) == len(profile.location)
    for location in locations.values():
        assert location.mapping_id in mappings
        assert all(line.function_id in functions for line in location.line)
    for function in functions.values():
        assert max(function.name, function.system_name, function.filename) < len(texts)
    for sample in profile.sample:
        assert len(sample.value) == len(profile.sample_type)
        assert all(place in locations for place in sample.location_id)
    written = len(profile.SerializeToString())
    profile.DiscardUnknownFields()
    assert len(profile.SerializeToString()) == written


def test_one_sample_a_stack_and_process_with_its_pid(broadcast):
    profile = read(broadcast)
    found = [(tuple(sample.location_id), sample.label[0].num) for sample in profile.sample]
    assert len(set(found)) == len(found) == 16 * len(broadcast.callgraph.origins)
    texts = profile.string_table
    assert {texts[sample.label[0].key] for sample in profile.sample} == {"pid"}
    # pprof drops a label whose number is 0, that of the first process, unless it has a unit.
    assert {texts[sample.label[0].num_unit] for sample in profile.sample} == {"count"}


def test_the_leaf_of_a_stack_is_first_and_main_is_last(broadcast):
    nodes = list(broadcast.nodes.values())
    for sample in read(broadcast).sample:
        stack = [nodes[place - 1] for place in sample.location_id]
        assert stack[0].kind == "cost_centre"
        assert stack[-1].name == "main"
        graph = broadcast.callgraph.graph
        assert all(graph.has_edge(b.id, a.id) for a, b in itertools.pairwise(stack))


def test_system_names_differ_from_names_so_that_pprof_leaves_angle_brackets_alone(calling):
    profile = read(calling("main.<locals>.work"))
    texts = profile.string_table
    assert "main.<locals>.work" in {texts[function.name] for function in profile.function}
    assert all(function.name != function.system_name for function in profile.function)
    assert len({function.system_name for function in profile.function}) == len(profile.function)


def test_hostile_names_are_strings_of_the_table(hostile):
    texts = list(read(hostile).string_table)
    assert {fmt.label(node) for node in hostile.nodes.values()} <= set(texts)
    assert all(text.isprintable() for text in texts)


@pytest.mark.parametrize("value", [1, 127, 128, 300, 2**32, 2**63 - 1])
def test_numbers_of_all_sizes_are_written_as_they_are_read(value):
    profile = PROFILE()
    profile.ParseFromString(pprof.number(10, value) + pprof.packed(13, [value, 0, value]))
    assert profile.duration_nanos == value
    assert list(profile.comment) == [value, 0, value]
