<?php

declare(strict_types=1);

namespace Rankduel;

/** The result of a report. */
enum Status: string
{
    case Recorded = 'recorded';
    /** It was stored before: an earlier attempt had arrived. */
    case Duplicate = 'duplicate';
    /** The clicks arrived after a final call or the end of the window, and change nothing. */
    case Late = 'late';
    /** It is about a fallback page, and was not sent. */
    case Ignored = 'ignored';
}
