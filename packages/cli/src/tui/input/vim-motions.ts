/** Where keys of vim lead in a text. Places are offsets, in code units. */

export function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1
}

/** Behind its last character. */
export function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
}

export function wordForward(text: string, at: number): number {
  const kind = kindAt(text, at)
  let place = at
  if (kind !== 'blank') while (place < text.length && kindAt(text, place) === kind) place++
  while (place < text.length && kindAt(text, place) === 'blank') place++
  return place
}

export function wordBack(text: string, at: number): number {
  let place = at
  while (place > 0 && kindAt(text, place - 1) === 'blank') place--
  const kind = kindAt(text, place - 1)
  while (place > 0 && kindAt(text, place - 1) === kind) place--
  return place
}

/** On the last character of the word. */
export function wordEnd(text: string, at: number): number {
  let place = at + 1
  while (place < text.length && kindAt(text, place) === 'blank') place++
  const kind = kindAt(text, place)
  while (place + 1 < text.length && kindAt(text, place + 1) === kind) place++
  return Math.min(place, Math.max(0, text.length - 1))
}

function kindAt(text: string, at: number): 'blank' | 'word' | 'sign' {
  const character = text[at] ?? ' '
  if (/\s/.test(character)) return 'blank'
  return /[\p{L}\p{N}_\ud800-\udfff]/u.test(character) ? 'word' : 'sign'
}
