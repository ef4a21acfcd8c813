import { sep } from 'node:path'
import type { FolderListing } from './list-folder.ts'
import { oneLine } from '../util/visible-text.ts'
import { decodeText, type LimitedText } from './read-limited.ts'

/** Files as they were when the user trusted them, by absolute path. */
export type TrustedContent = ReadonlyMap<string, { bytes: Uint8Array; realPath: string }>

/** Like `listFolder`, of what was trusted. */
export function listTrusted(content: TrustedContent, folder: string): FolderListing {
  const start = folder + sep
  const inside = [...content.keys()].filter((path) => path.startsWith(start))
  const names = new Set(inside.map((path) => path.slice(start.length).split(sep, 1)[0] ?? ''))
  return { names: [...names].filter((name) => !name.startsWith('.')).sort(), problems: [] }
}

/** Like `readLimited`, of what was trusted. */
export function readTrusted(content: TrustedContent, path: string, maxBytes: number): LimitedText {
  const file = content.get(path)
  if (!file) return { type: 'missing' }
  const { bytes, realPath } = file
  const leaveOut = (why: string): LimitedText => ({
    type: 'refused',
    problem: `${oneLine(path)} was left out: ${why}.`,
  })
  if (bytes.length > maxBytes) return leaveOut(`it has more than ${maxBytes} bytes`)
  const text = decodeText(bytes, { isCut: false })
  return text === undefined ? leaveOut('it is not text in UTF-8') : { type: 'text', text, isCut: false, realPath }
}
