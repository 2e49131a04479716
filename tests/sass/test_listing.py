"""The disassembler's listing, read as rows."""

from __future__ import annotations

from gpusim.sass.listing import row_of_text, section

LISTING = """\
\t.section\t.text.one,"ax"
        /*0000*/                   MOV R20, 32@lo((one + .L_x_1@srel)) ;
        /*0010*/                   MOV R21, 32@hi((one + .L_x_1@srel)) ;
        /*0020*/                   CALL.REL.NOINC `($one$other) ;
.L_x_1:
        /*0030*/                   EXIT ;
"""


def test_addresses_of_labels_that_a_linker_sets_are_numbers() -> None:
    code = bytes(4 * 16)  # the linker has not filled them in
    found = section(LISTING, "one", (), code)
    assert found is not None
    assert [row.operands[1].number for row in found.rows[:2]] == [0x30, 0]
    assert [row.immediate for row in found.rows[:2]] == [0x30, 0]


def test_a_row_is_read_without_the_disassemblers_annotations() -> None:
    row = row_of_text('STL.64 [R1], R146                         (*"SpillRefill"*)')
    assert row.text == "STL.64 [R1], R146"


def test_lines_of_ptx_are_no_lines_of_the_source() -> None:
    """A linked file has a text of PTX for each of its parts."""
    places = '\t//## File "a.cu", line 7\n\t//## File ".nv_debug_ptx_txt{}", line 31\n'
    for part, line in (("", 31), (".2335590954", 0)):
        text = LISTING.replace("        /*0000*/", f"{places.format(part)}        /*0000*/")
        found = section(text, "one", ("a.cu",))
        assert found is not None
        assert [(row.place.line, row.ptx_line) for row in found.rows] == [(7, line)] * 4
