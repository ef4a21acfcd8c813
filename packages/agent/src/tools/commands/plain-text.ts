/** Output as somebody would read it who has no terminal: no escapes, and of a line that was drawn over only what came last. */
export function plainText(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes)
  return text.replace(escapes, '').replace(lineEnds, '\n').replace(drawnOver, '').replace(controls, '')
}

// Whoever writes the output decides what these have to chew on: each takes time in proportion to its length, whatever it is.

/**
 * Sequences for a terminal: those with parameters, those with a string (title, link, clipboard), and the short ones. A string
 * that is not ended goes to the end of its line.
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
/** Everything below a space but tab and line feed, and the second set of controls. */
// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]+/g
