/** Quoted, short, and without what would move a cursor or turn text around. */
export function shown(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
  return `"${plain.length > 100 ? `${plain.slice(0, 100)}…` : plain}"`
}
