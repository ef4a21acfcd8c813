import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { decodeTextFile } from './text-file.ts'

export interface Versions {
  /** The name to show. */
  name: string
  before: Uint8Array | undefined
  after: Uint8Array
}

/** With more changed lines a diff is slow and not useful. */
const maxChangedLines = 1000
const maxBytes = 1024 * 1024

/** The change as a unified diff, or a sentence if there is none. */
export function unifiedDiff({ name, before, after }: Versions): string {
  if (!before || before.length + after.length > maxBytes) return '(The file is too large for a diff.)'
  const [old, current] = [decodeTextFile(before), decodeTextFile(after)]
  if (!old || !current) return '(There is no diff of what is not text.)'
  if (old.text === current.text) return '(The text is the same as before.)'
  const patch = createTwoFilesPatch(name, name, old.text, current.text, undefined, undefined, {
    context: 3,
    maxEditLength: maxChangedLines,
    headerOptions: FILE_HEADERS_ONLY,
  })
  return patch?.trimEnd() ?? '(Too much has changed for a diff.)'
}
