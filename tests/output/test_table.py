"""The widths of columns."""

from rwq_cli.output.table import _fit


class TestColumnWidths:
    def test_columns_that_fit_keep_their_width(self) -> None:
        assert _fit([5, 10, 20], [0, 2, 1], 80) == [5, 10, 20]

    def test_the_column_of_the_first_rank_shrinks_first(self) -> None:
        assert _fit([5, 20, 60], [0, 2, 1], 60) == [5, 20, 31]
        assert _fit([5, 40, 60], [0, 2, 1], 50) == [5, 31, 10]

    def test_a_column_without_room_is_left_out(self) -> None:
        assert _fit([40, 40, 60], [0, 2, 1], 55) == [40, 13, 0]

    def test_a_fixed_column_does_not_shrink(self) -> None:
        assert _fit([100], [0], 80) == [100]
