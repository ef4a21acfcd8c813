import { decodeKittyPrintable } from '@earendil-works/pi-tui'

/** What a key press writes; undefined for a key that is a command. */
export function typedText(data: string): string | undefined {
  const text = decodeKittyPrintable(data) ?? data
  return text !== '' && !/[\u0000-\u001f\u007f-\u009f]/.test(text) ? text : undefined
}
