/** Text that is awkward to store: what looks like a line of a log, separators, characters of every width. */
const fragments = [
  '"}\n{"seq":1,"type":"message","id":"x","crc":"00000000"}',
  '{"seq":2,"type":"leaf"}\n',
  '\u2028\u2029\u0085\u0000\u001b[2J',
  'über naïve 日本語 🧵🪢 ',
  '\\"\\\\n,"crc":"ffffffff"',
  'The quick brown fox jumps over the lazy dog. ',
  'x'.repeat(60),
]

/** Slices of one long text: cheap to make, hardly ever the same twice. */
export function sampleText(random: () => number): (length: number) => string {
  let source = ''
  while (source.length < 600_000) source += `${fragments[Math.floor(random() * fragments.length)]}${random()} `
  return (length) => {
    const start = Math.floor(random() * (source.length - length))
    return source.slice(start, start + length).toWellFormed()
  }
}
