import { opendir } from 'node:fs/promises'
import { oneLine } from '../util/visible-text.ts'
import { isMissing, realPlaceOf, unreadable } from './real-place.ts'

export interface FolderListing {
  /** Sorted, without hidden ones. */
  names: readonly string[]
  problems: readonly string[]
}

const maxNames = 1000

/** The names in a folder; none if it does not exist. With `within`, a folder that leads out of that one is rejected. */
export async function listFolder(path: string, within?: string): Promise<FolderListing> {
  const place = await realPlaceOf(path, within)
  if (place.type === 'missing') return { names: [], problems: [] }
  if (place.type === 'refused') return { names: [], problems: [place.problem] }
  const names: string[] = []
  try {
    for await (const { name } of await opendir(place.realPath)) {
      if (name.startsWith('.')) continue
      if (names.length === maxNames) {
        const problem = `${oneLine(path)} has more than ${maxNames} entries; some of them were left out.`
        return { names: names.sort(), problems: [problem] }
      }
      names.push(name)
    }
  } catch (error) {
    return { names: [], problems: isMissing(error) ? [] : [unreadable(path, error)] }
  }
  return { names: names.sort(), problems: [] }
}
