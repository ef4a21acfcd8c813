import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isId } from '../../line/ids.ts'
import type { Place } from '../../log/log-store.ts'
import { pathsInFolder } from './log-paths.ts'

export interface StoredLogFile {
  id: string
  place: Place
  path: string
}

/**
 * The logs below a store's folder, in every place, without reading them. For callers that read all logs and
 * need no list.
 */
export async function logFilesIn(folder: string): Promise<StoredLogFile[]> {
  const found: StoredLogFile[] = []
  for (const place of ['active', 'archive', 'trash'] as const) {
    const placeFolder = place === 'active' ? folder : join(folder, `.${place}`)
    for (const id of (await namesIn(placeFolder)).filter(isId).sort()) {
      found.push({ id, place, path: pathsInFolder(join(placeFolder, id)).log })
    }
  }
  return found
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
