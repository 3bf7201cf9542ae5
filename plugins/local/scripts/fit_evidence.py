"""Fit the evidence model and write `data/evidence.json`.

    python plugins/local/scripts/fit_evidence.py DATA_DIR [--out FILE]

Needs numpy and scipy. DATA_DIR holds the labelled sets in the common form (see evidence_pools.py); only sets whose licence
permits shipping what was fitted on them are read: see SETS.

Logistic regression: features standardised with every set of the same weight and clipped at 4 standard deviations, one free
intercept a set (its mean is shipped: base rates differ between sets), every set of the same total weight, L2 with C = 0.3.
`keep_at` is the best F1 over the pooled sets, each of the same weight. `drop_below` is the score under which LOST of the
evidence of the sets with questions and claims lies (the dialogue sets have no evidence in that sense).
"""

from __future__ import annotations

import argparse
import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from evidence_pools import Pool, training_pools
from numpy.typing import NDArray
from scipy.optimize import minimize

from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate_local.embedding import usem3
from narrowgate_local.evidence import features
from narrowgate_local.evidence.analysis import view_query, view_text
from narrowgate_local.evidence.statistics import Idf
from narrowgate_local.profiles import usem3_profile
from narrowgate_local.settings import EmbedderSettings

VERSION: Final = "1"
CLIP: Final = 4.0
C: Final = 0.3
HAND: Final = {"speaker": 0.6, "first_person": 0.5}
LOST: Final = 0.025
DIALOGUES: Final = ("madial-en", "madial-zh")
TARGET: Final = Path(__file__).parents[1] / "src/narrowgate_local/data/evidence.json"

SETS: Final[dict[str, dict[str, str]]] = {
    "xquad-en": {
        "licence": "CC BY-SA 4.0",
        "attribution": "XQuAD, Artetxe, Ruder and Yogatama 2020; DeepMind; from SQuAD 1.1, Rajpurkar et al. 2016",
        "source": "https://github.com/google-deepmind/xquad",
    },
    "xquad-zh": {
        "licence": "CC BY-SA 4.0",
        "attribution": "XQuAD, Artetxe, Ruder and Yogatama 2020; DeepMind; from SQuAD 1.1, Rajpurkar et al. 2016",
        "source": "https://github.com/google-deepmind/xquad",
    },
    "cmrc2018": {
        "licence": "CC BY-SA 4.0",
        "attribution": "CMRC 2018, Cui et al. 2019; Joint Laboratory of HIT and iFLYTEK Research",
        "source": "https://github.com/ymcui/cmrc2018",
    },
    "drcd": {
        "licence": "CC BY-SA 3.0",
        "attribution": "DRCD, Shao et al. 2018; Delta Research Center",
        "source": "https://github.com/DRCKnowledgeTeam/DRCD",
    },
    "fever-symmetric": {
        "licence": "CC BY-SA 3.0 (data), MIT (code)",
        "attribution": "FEVER Symmetric 0.2, Schuster et al. 2019; from FEVER, Thorne et al. 2018",
        "source": "https://github.com/TalSchuster/FeverSymmetric",
    },
    "madial-en": {
        "licence": "MIT",
        "attribution": "MADial-Bench, He et al. 2025",
        "source": "https://github.com/hejunqing/MADial-Bench",
    },
    "madial-zh": {
        "licence": "MIT",
        "attribution": "MADial-Bench, He et al. 2025",
        "source": "https://github.com/hejunqing/MADial-Bench",
    },
}

Matrix = NDArray[np.float64]


class Table:
    """One set as numbers: a row for each pair.

    Attributes:
        values: pairs x columns.
        keep: labels, 0 or 1.
    """

    def __init__(self, pool: Pool, columns: tuple[str, ...], vectors: dict[str, Any]) -> None:
        idf = Idf.of(pool.index)
        views = {text: view_text(text) for group in pool.groups for text, _ in group.candidates}
        rows, keep = [], []
        for group in pool.groups:
            asked = features.Asked.of(view_query(group.query), idf)
            for text, label in group.candidates:
                values = features.values(asked, views[text])
                values[features.EMBEDDING] = float(vectors[group.query] @ vectors[text])
                rows.append([values[name] for name in columns])
                keep.append(float(label))
        self.name, self.groups = pool.name, len(pool.groups)
        self.values: Matrix = np.array(rows)
        self.keep: Matrix = np.array(keep)


def fit(tables: list[Table], width: int) -> dict[str, Any]:
    """Fit the first `width` columns (and the hand-set ones behind them for the threshold)."""
    parts = [np.full(len(t.keep), 1.0 / len(t.keep) / len(tables)) for t in tables]
    part = np.concatenate(parts)
    values = np.concatenate([t.values[:, :width] for t in tables])
    keep = np.concatenate([t.keep for t in tables])
    mean = part @ values
    sd = np.sqrt(part @ (values - mean) ** 2)
    scaled = np.clip((values - mean) / sd, -CLIP, CLIP)
    own = np.repeat(np.eye(len(tables)), [len(t.keep) for t in tables], axis=0)
    design = np.hstack([scaled, own])
    weight = part * len(keep)
    penalty = np.r_[np.full(width, 1.0 / C), np.zeros(len(tables))]

    def loss(beta: Matrix) -> tuple[float, Matrix]:
        z = design @ beta
        gradient = design.T @ (weight * (1.0 / (1.0 + np.exp(-z)) - keep)) + penalty * beta
        return float(weight @ (np.logaddexp(0.0, z) - keep * z) + 0.5 * penalty @ beta**2), gradient

    found = minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
    intercept = float(found[width:].mean())
    hand = np.array(list(HAND.values()))
    scores = [
        np.clip((t.values[:, :width] - mean) / sd, -CLIP, CLIP) @ found[:width]
        + intercept
        + t.values[:, -len(hand) :] @ hand
        for t in tables
    ]
    return {
        "mean": mean,
        "sd": sd,
        "coefficient": found[:width],
        "intercept": intercept,
        "keep_at": threshold(scores, [t.keep for t in tables]),
        "drop_below": low_edge([s[t.keep > 0] for s, t in zip(scores, tables, strict=True) if t.name not in DIALOGUES]),
    }


def threshold(scores: list[Matrix], labels: list[Matrix]) -> float:
    """Return the threshold of the best F1 over the sets, each of the same weight."""
    every = np.concatenate(scores)
    part = np.concatenate([np.full(len(one), 1.0 / len(one)) for one in labels])
    keep = np.concatenate(labels)
    order = np.argsort(-every, kind="stable")
    hits, kept = np.cumsum((part * keep)[order]), np.cumsum(part[order])
    best = int(np.argmax(2.0 * hits / (kept + part @ keep)))
    return float(every[order][best])


def low_edge(evidence: list[Matrix]) -> float:
    """Return the score under which LOST of the evidence lies, every set with the same weight."""
    every = np.concatenate(evidence)
    part = np.concatenate([np.full(len(one), 1.0 / len(one) / len(evidence)) for one in evidence])
    order = np.argsort(every, kind="stable")
    return float(every[order][np.searchsorted(np.cumsum(part[order]), LOST)])


def embed(pools: list[Pool]) -> dict[str, Any]:
    """Return a vector for every query and text."""
    texts = list(dict.fromkeys(t for p in pools for g in p.groups for t in (g.query, *(c for c, _ in g.candidates))))
    return dict(zip(texts, asyncio.run(usem3.make(EmbedderSettings()).embed(texts)), strict=True))


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=TARGET)
    arguments = parser.parse_args()
    pools = list(training_pools(arguments.data))
    vectors = embed(pools)
    profile = str(usem3_profile(EmbedderSettings()))
    variants: dict[str, Any] = {}
    for name, fitted in (("plain", features.FITTED), ("usem3", (*features.FITTED, features.EMBEDDING))):
        tables = [Table(pool, (*fitted, *features.HAND), vectors) for pool in pools]
        result = fit(tables, len(fitted))
        variants[name] = {
            "profile": None if name == "plain" else profile,
            "features": {
                feature: {key: round(float(result[key][place]), 6) for key in ("mean", "sd", "coefficient")}
                for place, feature in enumerate(fitted)
            },
            "intercept": round(result["intercept"], 6),
            "keep_at": round(result["keep_at"], 3),
            "drop_below": round(result["drop_below"], 3),
        }
    model = {
        "model": "local.evidence",
        "version": VERSION,
        "analyser": ANALYSER_VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "command": "python plugins/local/scripts/fit_evidence.py DATA_DIR",
        "sets": [
            {"name": t.name, **SETS[t.name], "questions": t.groups, "pairs": len(t.keep), "positives": int(t.keep.sum())}
            for t in tables
        ],
        "clip": CLIP,
        "hand": HAND,
        "hand_note": "set by hand, not fitted: no permissively licensed set holds speakers or first persons",
        "drop_below_note": f"under it lie {LOST:.1%} of the evidence of the sets with questions and claims",
        "variants": variants,
    }
    arguments.out.write_text(json.dumps(model, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
