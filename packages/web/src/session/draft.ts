/** A draft with text in front of it: what was typed meanwhile stays. */
export function inFrontOf(draft: string, text: string): string {
  return draft === '' ? text : `${text}\n${draft}`
}
