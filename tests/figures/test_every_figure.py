"""Every figure: its claims measured again, its picture at both widths, its settings refused or set."""

import numpy as np
import pytest

from icl.errors import InputError
from icl.look import Look, drawn_as
from tests.conformance.configs import configs
from tests.drawn import faults, widths
from tests.figures.bases import SMALL, STORED, base, built, stored

FIGURES = [config.name for config in configs("figure")]
DRAWN_ALONE = ("ahn/fig6", "ahn/fig7", "giannou/fig2")  # of which no arrays of the claims are stored
COLUMN = 3.3  # inches
OF_A_USER = "lines.linewidth: 0.5\npatch.linewidth: 0.5\nfont.size: 6\n"


def test_there_are_records_of_every_figure():
    assert {*STORED, *SMALL} == {*FIGURES}


@pytest.mark.parametrize("id", [id for id in STORED if id not in DRAWN_ALONE])
def test_claims_are_those_stored_number_by_number(id):
    request, records, claims = stored(id)
    found = request.claims(records)
    assert [_rounded(claim) for claim in found] == [_rounded(claim) for claim in claims]


def _rounded(value):
    """Return a claim with nine digits of every number."""
    if isinstance(value, dict):
        return {str(key): _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.parametrize("id", FIGURES)
def test_a_picture_is_legible_at_both_widths_and_in_a_users_lines(id, tmp_path):
    figure, records = base(id)
    assert not faults(figure.picture(records))
    path = tmp_path / "my.mplstyle"
    path.write_text(OF_A_USER)
    with drawn_as(Look((str(path),), COLUMN)):
        narrow = figure.picture(records)
    assert narrow.get_figwidth() == COLUMN and not faults(narrow)
    assert widths(narrow) <= {0.5}


COVARIANCE = "figure.covariance=[[2,0.3],[0.3,1]]"
SHORT = ["figure.seeds=[0]", "figure.steps=2"]
OF_SIGMA = {
    "ahn/fig1": ["figure.dim=2", "figure.layers=1", *SHORT],
    "ahn/fig7": [
        "figure.dim=2",
        "figure.layers=[1]",
        "figure.test_contexts=20",
        "figure.search_contexts=20",
        *SHORT,
    ],
    "looped/fig3": ["figure.layers=2", "figure.descent_steps=2", *SHORT],
}


@pytest.mark.parametrize(("id", "short"), OF_SIGMA.items())
def test_a_covariance_can_be_set_where_the_statement_has_one(icl, tmp_path, id, short):
    command = ["figure", id, "scale=smoke", f"paths.outputs={tmp_path / 'outputs'}", "format=json", *short]
    plain, other = (icl(*command, *more).json for more in ([], [COVARIANCE]))
    measured, others = ([claim["measured"] for claim in made["claims"]] for made in (plain, other))
    assert measured != others
    assert icl(*command, "figure.covariance=[[1,2],[2,1]]").code == 2


REFUSED = [
    ("ahn/fig1", {"layers": 13}, "figure.layers=13"),
    ("ahn/fig1", {"steps": 1.5}, "figure.steps=1.5"),
    ("ahn/fig2", {"lr": 0}, "figure.lr=0"),
    ("ahn/fig2", {"seeds": [1, 1]}, "seeds="),
    ("ahn/fig4", {"layers": 1}, "figure.layers=1"),  # (11) has a B in all layers but the last
    ("ahn/fig6", {"init_stds": [0.1, 0.1]}, "figure.init_stds"),
    ("ahn/fig7", {"layers": [5]}, "figure.layers=5"),
    ("giannou/fig8", {"starts": 2, "grown": False, "tilted": False}, r"starts=2: needs figure\.grown=true"),
    ("giannou/fig8", {"tilted": True, "grown": False}, r"tilted=true: needs figure\.grown=true"),
    ("looped/fig1", {"contexts": [20, 20]}, "contexts"),
    ("looped/fig1", {"loops": []}, "loops"),
    ("looped/fig4", {"at_test": 2}, "at_test=2"),
    ("looped/fig2", {"dims": [1]}, "dims"),
    ("looped/fig2", {"loops": [6]}, "loops=6: at most 5"),
    ("looped/fig5", {"loops": [1, 2]}, "loops"),
    ("looped/fig5", {"sizes": [-1]}, "sizes"),
    ("lu/fig1", {"dims": [10, 6]}, "figure.dims"),
    ("lu/fig1", {"draws": 1}, "figure.draws=1"),
    ("lu/fig2", {"kappas": [[0.1]]}, "figure.kappas"),
    ("lu/fig2", {"draws": [4]}, "figure.draws"),
    ("lu/fig3", {"alpha_most": 1e303}, "alpha_most"),
    ("lu/fig3", {"errors": ["icl", "ridge", "icl"]}, "figure.errors"),
    ("lu/fig4", {"rho": 0}, "figure.rho"),
]


@pytest.mark.parametrize(("id", "settings", "words"), REFUSED)
def test_settings_that_make_no_figure_are_refused(id, settings, words):
    with pytest.raises(InputError, match=words):
        built(id, **settings)


def test_what_the_battery_would_object_to_is_seen():
    figure, records = base("xie/fig1")
    picture = figure.picture(records)
    axes = picture.axes[0]
    axes.plot(axes.get_xlim(), np.array(axes.get_ylim()), label="LSA, trained")
    axes.plot(
        [0], [0], color="#D55E00", marker="o", markerfacecolor="none", linestyle="none", label="another"
    )
    axes.legend(loc="upper right")
    axes.set_title("a title " * 40)
    found = {one.partition(":")[0] for one in faults(picture)}
    assert found >= {"covered", "alike", "leaves the picture"}
