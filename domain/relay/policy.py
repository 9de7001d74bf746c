"""What an operator may set about the rules."""

from dataclasses import dataclass

from domain.limits import COHORT_PERCENT_MAX, HEARTBEAT_TTL_MS
from domain.refusals import InvalidRegionalRehomeCohort


@dataclass(frozen=True, slots=True)
class Policy:
    """Refuses `invalid_regional_rehome_cohort` unless the cohort is a whole 0 to 100 percent."""

    require_live_cells: bool = True
    heartbeat_ttl_ms: int = HEARTBEAT_TTL_MS
    regional_rehome_cohort_percent: int = 0

    def __post_init__(self) -> None:
        percent = self.regional_rehome_cohort_percent
        if not isinstance(percent, int) or not 0 <= percent <= COHORT_PERCENT_MAX:
            raise InvalidRegionalRehomeCohort(percent=percent)
