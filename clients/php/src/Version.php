<?php

declare(strict_types=1);

namespace Rankduel;

/**
 * The version of this client, and whether a server is too old for it.
 *
 * @internal
 */
final class Version
{
    public const CLIENT = '0.1.0';

    /** @param string $head the head of an answer */
    public static function checkServer(string $head): void
    {
        $names = preg_match('/^rankduel-version:\s*((\d+\.\d+)\.\S*)\s*$/im', $head, $found) === 1;
        // changes of the third number always fit
        $own = (string) preg_replace('/^(\d+\.\d+)\..*/', '$1', self::CLIENT);
        if ($names && version_compare($found[2], $own, '<')) {
            $detail = "the server has version $found[1], and this client " . self::CLIENT . ': upgrade the server';
            throw new RankduelException('server-too-old', $detail, 200);
        }
    }
}
