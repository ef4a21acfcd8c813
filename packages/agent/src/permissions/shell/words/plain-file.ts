import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs'

// Windows has neither this flag nor such pipes.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/**
 * The content of a file that may be hostile. Undefined for a pipe or a device, which might never end, and for a file
 * that is too large.
 */
export function readPlainFile(path: string, { maxBytes }: { maxBytes: number }): Buffer | undefined {
  // Checked before it is opened: opening a device may have side effects.
  if (!statSync(path).isFile()) return undefined
  const file = openSync(path, flags)
  try {
    const stats = fstatSync(file)
    return stats.isFile() && stats.size <= maxBytes ? readFileSync(file) : undefined
  } finally {
    closeSync(file)
  }
}
