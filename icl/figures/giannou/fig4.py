"""Figure 4 of giannou: the same answers out of distribution."""

from icl.figures.claims import Claim
from icl.figures.figure import Records
from icl.figures.giannou.outputs import FAR, Outputs, lost_beyond


class Fig4(Outputs):
    shown = FAR

    def claims(self, records: Records) -> list[Claim]:
        deep = [depth for depth in self.layers if depth > 1]
        return [
            Claim.of(
                "out of distribution LSA, without a mask, does not follow the linear function, from two "
                "layers on (N(0, I))",
                *lost_beyond(records["outputs"].weights, "unmasked", deep),
            )
        ]
