/** Matches complete escape sequences, so that their parameters do not remain as text. Runs in linear time. */
const escapes = new RegExp(
  [
    String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?`,
    String.raw`(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?`,
    String.raw`\x1b[ -/]*[0-~]?`,
  ].join('|'),
  'g',
)
// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]+/g
/** Characters that are invisible or hide others: zero width, direction, tags, variation selectors, private use. */
const hidden = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Co}\p{Zl}\p{Zp}\u2800]+/gu

/** Text of a server without control characters. Line endings become `\n`. */
export function withoutControls(text: string): string {
  return text.toWellFormed().replace(/\r\n/g, '\n').replace(escapes, '').replace(controls, '')
}

/** Text of a server in which everything that a model sees is visible. */
export function withoutHidden(text: string): string {
  return withoutControls(text).replace(hidden, '')
}

export function hasHidden(text: string): boolean {
  return withoutHidden(text) !== text
}
