/** The address if a link to it is harmless: only pages and mail, and only absolute. Everything else stays text. */
export function safeUrl(href: string): string | undefined {
  const url = URL.parse(href)
  return url && allowed.has(url.protocol) ? url.href : undefined
}

const allowed = new Set(['https:', 'http:', 'mailto:'])

/** Replaces the character references of HTML that Markdown allows. Unknown names stay as they are. */
export function decodeReferences(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/g, (whole, ...groups: unknown[]) => {
    const [decimal, hexadecimal, name] = groups as (string | undefined)[]
    if (name !== undefined) return Object.hasOwn(names, name) ? (names[name] ?? whole) : whole
    const code = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal)
    return code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? '\ufffd' : String.fromCodePoint(code)
  })
}

const names: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  times: '×',
  rarr: '→',
  larr: '←',
}
