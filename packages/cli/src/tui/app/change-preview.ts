import type { OpenQuestion } from '@tapetree/client'
import type { DiffFile } from '@tapetree/session/screen'
import { diffTexts } from '../../text/line-diff.ts'
import { readRegularFile } from '../../util/read-regular-file.ts'
import { seen } from '../panels/permission-text.ts'

/** A larger file is not read for a preview. */
const maxBytes = 1024 * 1024

/**
 * What a requested `edit` or `write` would change in the file as it is now. Undefined if that is unknown, for example because the file
 * cannot be read; then the request itself says what it changes.
 */
export async function previewChange({ title, tool, input = {} }: OpenQuestion): Promise<DiffFile[] | undefined> {
  // The real path, as the request names it.
  const [, path] = /^Write (\/.+)$/m.exec(title) ?? []
  if (path === undefined) return undefined
  const file = await readRegularFile(path, { maxBytes })
  const before = file.type === 'read' ? decoded(file.bytes) : undefined
  if (before === undefined && file.type !== 'not-found') return undefined
  const after = tool === 'write' ? textIn(input, 'content') : before && edited(before, input)
  if (after === undefined) return undefined
  const shown = (text: string): string => seen(text).replaceAll('\t', '    ')
  return [
    diffTexts({ name: shown(path), before: before === undefined ? undefined : shown(before), after: shown(after) }),
  ]
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll('\r\n', '\n')
  } catch {
    // Not text in this encoding.
    return undefined
  }
}

function edited(text: string, input: Readonly<Record<string, unknown>>): string | undefined {
  const [oldText, newText] = [textIn(input, 'oldText'), textIn(input, 'newText')]
  if (oldText === undefined || newText === undefined || oldText === '' || !text.includes(oldText)) return undefined
  return input['replaceAll'] === true ? text.replaceAll(oldText, () => newText) : text.replace(oldText, () => newText)
}

function textIn(input: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = input[name]
  return typeof value === 'string' ? value.replaceAll('\r\n', '\n') : undefined
}
