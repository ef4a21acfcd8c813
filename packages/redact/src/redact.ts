import type { Scanner } from './scanner.ts'

/** The text with every secret replaced by a marker such as `[redacted: github-token]`. Redacting twice changes nothing. */
export function redactText(text: string, scanners: readonly Scanner[]): string {
  return scanners.reduce((before, scanner) => {
    const { output } = scanner.scan({
      text: before,
      offset: 0,
      from: 0,
      afterSecret: -1,
      isWhole: true,
    })
    // Where nothing was found, the same string is not held twice.
    return output === before ? before : output
  }, text)
}
