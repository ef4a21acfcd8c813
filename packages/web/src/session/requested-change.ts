import { changedFiles, permissionText, spellInvisible, type Asked } from '@tapetree/session/screen'
import type { DiffFile, PermissionText } from '@tapetree/session/screen'

/** What a request to change a file shows. */
export interface RequestedChange {
  files: readonly DiffFile[]
  /** Arguments that the diff does not show, such as `replaceAll`. */
  others: PermissionText['input']
}

/** Undefined if the request does not change a file. Nothing in the texts can be hidden. */
export function changeOf(request: Asked): RequestedChange | undefined {
  const { tool, input } = request
  if ((tool !== 'edit' && tool !== 'write') || !input) return undefined
  const shown = Object.entries(input).map(([name, value]) => [
    name,
    typeof value === 'string' ? spellInvisible(value) : value,
  ])
  return {
    files: changedFiles(Object.fromEntries(shown), ''),
    others: permissionText(request).input.filter(({ name }) => !changeInputs.has(name)),
  }
}

/** The diff shows these. */
const changeInputs = new Set(['path', 'oldText', 'newText', 'content'])
