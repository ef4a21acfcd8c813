import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs'

// Windows has no such flag, and no such pipes.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/**
 * What a file holds that somebody else may have put there. Undefined for a pipe or a device, which might never end, and for more than
 * it may hold.
 */
export function readPlainFile(path: string, { maxBytes }: { maxBytes: number }): Buffer | undefined {
  // Looked at before it is opened: to open a device may do something.
  if (!statSync(path).isFile()) return undefined
  const file = openSync(path, flags)
  try {
    const stats = fstatSync(file)
    return stats.isFile() && stats.size <= maxBytes ? readFileSync(file) : undefined
  } finally {
    closeSync(file)
  }
}
