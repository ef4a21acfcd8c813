/**
 * Makes text of models, tools, files and titles safe for a terminal. No byte of the result can start an escape sequence, however it is cut:
 * removes complete styling sequences and shows all other control characters as visible symbols.
 */
export function harmless(text: string): string {
  return text.replaceAll(dressing, '').replaceAll(crlf, '\n').replaceAll(dangerous, pictureOf)
}

/** The same on one line, for a title or a file name. */
export function harmlessLine(text: string): string {
  return harmless(text)
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('\t', ' ')
}

/** Colors and links that programs print: CSI … m and OSC 8. */
// oxlint-disable-next-line no-control-regex
const dressing = /\u001b\[[0-9;:]*m|\u001b\]8;[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\)/g

const crlf = /\r\n/g

/** C0 except tab and newline, DEL, C1, and characters that change the text direction or are invisible. */
// oxlint-disable-next-line no-control-regex, no-misleading-character-class
const dangerous =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g

function pictureOf(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : '\ufffd'
}
