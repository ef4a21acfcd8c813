import type { HLJSApi, LanguageFn } from 'highlight.js'
import type { StyledLine } from './wrap-line.ts'
import type { Style, Theme } from '../theme.ts'
import { withinTime } from '../time-limit.ts'

/** Highlights code. Imports a grammar when it first sees its language: until then there is no result. */
export class Highlighter {
  readonly #onLoad: () => void
  /** Each highlighter compiles its grammars itself, so each has to get warm. */
  readonly #number = ++highlighters
  readonly #loading = new Set<string>()
  #core: HLJSApi | undefined

  /** `onLoad`: code requested earlier can be highlighted now. */
  constructor(onLoad: () => void) {
    this.#onLoad = onLoad
  }

  /** The code in lines. Undefined if the language is unknown or not loaded yet, or if the code takes too long to color. */
  highlight(code: string, language: string, theme: Theme): StyledLine[] | undefined {
    const name = languageNamed(language)
    if (name === undefined || code.length > maxCode || longLine.test(code)) return undefined
    if (!this.#core?.getLanguage(name)) {
      void this.#load(name)
      return undefined
    }
    const core = this.#core
    const colored = withinTime({ parser: `${name} ${this.#number}`, text: code }, () =>
      piecesOf(code).map((piece) => core.highlight(piece, { language: name, ignoreIllegals: true }).value),
    )
    return colored?.flatMap((html) => linesOfMarkup(html, theme))
  }

  async #load(name: LanguageName): Promise<void> {
    if (this.#loading.has(name)) return
    this.#loading.add(name)
    try {
      const [{ default: core }, { default: language }] = await Promise.all([
        import('highlight.js/lib/core'),
        languages[name](),
      ])
      this.#core ??= core.newInstance()
      this.#core.registerLanguage(name, language)
    } catch {
      // Code without colors is still readable.
      return
    }
    this.#onLoad()
  }
}

let highlighters = 0

/** Longer code is shown without colors. */
const maxCode = 50_000
/** The grammars scan from each character to the end of its line, some repeatedly: the time is quadratic in the line length. */
const longLine = /.{500}/

/**
 * Splits long code into chunks that are highlighted separately, at the end of a line, preferably an empty one: the time of a grammar may be
 * quadratic in the length.
 */
function piecesOf(code: string): string[] {
  const pieces: string[] = []
  let start = 0
  while (code.length - start > pieceLength) {
    const end = start + pieceLength
    const empty = code.lastIndexOf('\n\n', end)
    const cut = empty > start + pieceLength / 2 ? empty + 1 : code.lastIndexOf('\n', end)
    if (cut <= start) break
    pieces.push(code.slice(start, cut))
    start = cut + 1
  }
  return [...pieces, code.slice(start)]
}

const pieceLength = 4000

function languageNamed(given: string): LanguageName | undefined {
  const [word = ''] = given
    .trim()
    .toLowerCase()
    .split(/[\s,{]/)
  const name = aliases[word] ?? word
  return Object.hasOwn(languages, name) ? (name as LanguageName) : undefined
}

type LanguageName = keyof typeof languages

const languages = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'),
  ini: () => import('highlight.js/lib/languages/ini'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  markdown: () => import('highlight.js/lib/languages/markdown'),
  php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
} satisfies Record<string, () => Promise<{ default: LanguageFn }>>

export const languageNames = Object.keys(languages) as readonly LanguageName[]

const aliases: Readonly<Record<string, LanguageName>> = {
  sh: 'bash',
  shell: 'bash',
  console: 'bash',
  zsh: 'bash',
  h: 'c',
  'c++': 'cpp',
  cc: 'cpp',
  hpp: 'cpp',
  cs: 'csharp',
  scss: 'css',
  patch: 'diff',
  docker: 'dockerfile',
  golang: 'go',
  toml: 'ini',
  js: 'javascript',
  jsx: 'javascript',
  mjs: 'javascript',
  jsonc: 'json',
  jsonl: 'json',
  kt: 'kotlin',
  md: 'markdown',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  ts: 'typescript',
  tsx: 'typescript',
  mts: 'typescript',
  html: 'xml',
  svg: 'xml',
  vue: 'xml',
  yml: 'yaml',
}

const markup = /<span class="([^"]*)">|<\/span>|&(?:amp|lt|gt|quot|#x27);|[^<&]+/g
const characters: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#x27;': "'",
}

/** The highlighter returns its own HTML: spans with a class, and escaped special characters. */
function linesOfMarkup(html: string, { syntax }: Theme): StyledLine[] {
  const lines: Piece[][] = [[]]
  const styles: (Style | undefined)[] = [undefined]
  for (const [piece, classes] of html.matchAll(markup)) {
    if (classes !== undefined) styles.push(styleOf(classes, syntax) ?? styles.at(-1))
    else if (piece === '</span>') styles.pop()
    else {
      const style = styles.at(-1)
      const [first = '', ...rest] = (characters[piece] ?? piece).split('\n')
      addTo(lines.at(-1) ?? [], { text: first, style })
      for (const text of rest) lines.push([{ text, style }])
    }
  }
  return lines
}

interface Piece {
  text: string
  style: Style | undefined
}

function addTo(line: Piece[], piece: Piece): void {
  const last = line.at(-1)
  if (last?.style === piece.style && last) last.text += piece.text
  else line.push(piece)
}

/** `hljs-title function_` is a title. */
function styleOf(classes: string, syntax: Theme['syntax']): Style | undefined {
  const [, scope = ''] = /^hljs-(\S+)/.exec(classes) ?? []
  return Object.hasOwn(syntax, scope) ? syntax[scope] : undefined
}
