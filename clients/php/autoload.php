<?php

declare(strict_types=1);

// for applications without Composer
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Rankduel\\')) {
        require __DIR__ . '/src/' . substr($class, strlen('Rankduel\\')) . '.php';
    }
});
