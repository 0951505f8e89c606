<?php

declare(strict_types=1);

namespace Rankduel;

/** The outcome of a duel, if your own code merges the pages and credits the clicks. */
enum Outcome: string
{
    case Left = 'left';
    case Right = 'right';
    case Tie = 'tie';
    /** There was no click that says anything. */
    case None = 'none';
}
