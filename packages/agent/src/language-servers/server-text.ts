/** Text of a server as one line, cut. It is a copy: a part of a string would keep the whole message in memory. */
export function plainText(text: string, maxLength: number): string {
  const line = text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ').slice(0, maxLength)
  return Buffer.from(line).toString()
}
