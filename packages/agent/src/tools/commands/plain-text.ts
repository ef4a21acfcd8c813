/** Output as plain text: without escape sequences, and with only the last version of an overwritten line. */
export function plainText(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes)
  return text.replace(escapes, '').replace(lineEnds, '\n').replace(drawnOver, '').replace(controls, '')
}

// The command controls this input, so every pattern must run in linear time.

/**
 * Terminal sequences: with parameters, with a string (title, link, clipboard), and short ones. An unterminated
 * string ends with its line.
 */
const escapes = new RegExp(
  [
    String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?`,
    String.raw`(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?`,
    String.raw`\x1b[ -/]*[0-~]?`,
  ].join('|'),
  'g',
)
const lineEnds = /(?<!\r)\r+\n/g
const drawnOver = /(?<![^\n])[^\n]*\r(?=[^\r\n])/g
/** Control characters except tab and line feed, and the C1 set. */
// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]+/g
