/**
 * Text of models, tools, files and titles, as it may go to a terminal. No byte of it can begin an escape sequence, however it was cut:
 * whole sequences that only dress text are taken out, and what is left of control characters is shown as a picture of itself.
 */
export function harmless(text: string): string {
  return text.replaceAll(dressing, '').replaceAll(crlf, '\n').replaceAll(dangerous, pictureOf)
}

/** The same on one line, as for a title or a file name. */
export function harmlessLine(text: string): string {
  return harmless(text)
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('\t', ' ')
}

/** Colours and links that programs print: CSI … m and OSC 8. */
// oxlint-disable-next-line no-control-regex
const dressing = /\u001b\[[0-9;:]*m|\u001b\]8;[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\)/g

const crlf = /\r\n/g

/** C0 but tab and newline, DEL, C1, and characters that turn the direction of text or hide in it. */
// oxlint-disable-next-line no-control-regex, no-misleading-character-class
const dangerous =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g

function pictureOf(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : '\ufffd'
}
