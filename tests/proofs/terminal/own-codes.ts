/** The title of the terminal: our own words, and the folder of a proof. */
export const ownTitle = String.raw`(?:● |\? \(\d+\) )?tapetree · [\w.-]+`

/** What the app itself sends beside text and colours: where the cursor goes, what is cleared, which modes are on. Nothing else. */
const screenControl = [
  String.raw`\u001b\[\d*(?:;\d*)?[ABCDGHJK]`,
  // Cursor, other screen, wrapping, synchronized output, paste, focus, mouse, colour scheme.
  String.raw`\u001b\[\?(?:25|1049|7|2026|2004|1000|1002|1003|1004|1006|2031)[hl]`,
  // Keyboard: asks what it can do and switches it on and off.
  String.raw`\u001b\[>\d+u|\u001b\[<u|\u001b\[\?u|\u001b\[c|\u001b\[>4;[02]m`,
  // Asks for the size of a cell and for the background, once each.
  String.raw`\u001b\[16t|\u001b\]11;\?\u0007|\u001b\[\?996n`,
  // Keeps the title of the terminal, sets ours, which has only the name of the folder, and brings back the other.
  String.raw`\u001b\[2[23];0t|\u001b\]0;${ownTitle}\u0007`,
  // The end of a link, after every row.
  String.raw`\u001b\]8;;\u0007`,
].join('|')

/** The colours of our themes, and no others: sixteen by name, the palette, bold, dim, italic, underlined, inverse, struck, and their ends. */
const ownColour = String.raw`(?:0|1|2|3|4|7|9|22|23|24|27|29|3[0-79]|49|9[0-7]|[34]8;5;\d{1,3})`
const colours = String.raw`\u001b\[(?:${ownColour}(?:;${ownColour})*)?m`

// oxlint-disable-next-line no-control-regex
const control =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]/
// oxlint-disable-next-line no-control-regex
const controlOrBreak = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]/

export interface Scan {
  /** Cases whose marks were both seen. */
  arrived: Set<number>
  problems: string[]
}

/** Reads all that was written to a terminal. */
export function scan(bytes: Uint8Array): Scan {
  const problems: string[] = []
  const text = decode(bytes, problems)
  const arrived = new Set<number>()
  const withoutColours = text.replaceAll(new RegExp(colours, 'g'), '')
  // Between the marks there is not even what the app may send elsewhere.
  for (const [, number, between = ''] of withoutColours.matchAll(/B(\d+)b((?:(?!B\d+b)[^])*?)e\1E/g)) {
    arrived.add(Number(number))
    if (controlOrBreak.test(between)) problems.push(`case ${number}: ${JSON.stringify(between)} reached the terminal`)
  }
  const rest = withoutColours.replaceAll(new RegExp(screenControl, 'g'), '')
  for (let at = rest.search(control); at >= 0 && problems.length < 50; at = nextControl(rest, at)) {
    problems.push(`foreign: ${JSON.stringify(rest.slice(Math.max(0, at - 30), at + 30))}`)
  }
  return { arrived, problems }
}

function decode(bytes: Uint8Array, problems: string[]): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    problems.push('bytes that are no UTF-8 reached the terminal')
    return new TextDecoder().decode(bytes)
  }
}

function nextControl(text: string, after: number): number {
  const found = text.slice(after + 1).search(control)
  return found < 0 ? -1 : after + 1 + found
}
