import type { PermissionRequestRecord } from '../line/record.ts'

export interface PermissionText {
  /** The full effect of the call. */
  what: string
  /** Why it asks; empty if there is no reason. */
  why: string
  /** The other arguments of the call. */
  input: readonly { name: string; text: string }[]
}

export type Asked = Pick<PermissionRequestRecord['permissionRequest'], 'title' | 'tool' | 'input'>

/** The basis of the user's decision. Nothing is cut. `show` must make sure that nothing in a text can be hidden. */
export function permissionText({ title, tool, input = {} }: Asked, show = spellInvisible): PermissionText {
  const end = endOfWhat(title, input)
  const what = title.slice(0, end)
  const why = title.slice(end + 1)
  const rest = Object.entries(input)
    .map(([name, value]) => ({ name: show(name), text: show(textOf(value)) }))
    .filter(({ text }) => text !== '' && !show(what).includes(text))
  return { what: show(what === '' ? tool : what), why: show(why), input: rest }
}

/** Spells out control characters, invisible letters and unusual spaces. Line breaks and tabs stay. */
export function spellInvisible(text: string): string {
  return text.replaceAll(
    /[\p{Cf}\p{Zl}\p{Zp}]|(?![\n\t])\p{Cc}|(?! )\p{Zs}/gu,
    (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`,
  )
}

/** After the last argument of the call, such as a command of several lines; reasons follow, one per line. */
function endOfWhat(title: string, input: Record<string, unknown>): number {
  const given = Object.values(input).filter((value) => typeof value === 'string' && value !== '') as string[]
  const ends = given
    .filter((text) => title.includes(`${text}\n`))
    .map((text) => title.lastIndexOf(`${text}\n`) + text.length)
  if (ends.length > 0) return Math.max(...ends)
  const last = title.lastIndexOf('\n')
  return last < 0 ? title.length : last
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
}
