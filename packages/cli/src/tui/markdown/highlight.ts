import { codeLanguage, codePieces, longCodeLine, type CodeLanguage } from '@tapetree/session/screen'
import type { HLJSApi, LanguageFn } from 'highlight.js'
import type { Span, StyledLine } from './wrap-line.ts'
import type { Theme } from '../theme.ts'
import { withinTime } from '../time-limit.ts'

/** Highlights code. Imports a grammar when it first sees its language: until then there is no result. */
export class Highlighter {
  readonly #onLoad: () => void
  /** Each highlighter compiles its grammars itself, so each has to get warm. */
  readonly #number = ++highlighters
  readonly #loading = new Map<string, Promise<void>>()
  #core: HLJSApi | undefined

  /** `onLoad`: code requested earlier can be highlighted now. */
  constructor(onLoad: () => void) {
    this.#onLoad = onLoad
  }

  /** The code in lines. Undefined if the language is unknown or not loaded yet, or if the code takes too long to color. */
  highlight(code: string, language: string, theme: Pick<Theme, 'syntax'>): StyledLine[] | undefined {
    const name = codeLanguage(language)
    if (name === undefined || code.length > maxCode) return undefined
    if (!this.#core?.getLanguage(name)) {
      void this.load(name)
      return undefined
    }
    if (longCodeLine.test(code)) return undefined
    const core = this.#core
    const colored = withinTime({ parser: `${name} ${this.#number}`, text: code }, () =>
      piecesOf(code).map((piece) => core.highlight(piece, { language: name, ignoreIllegals: true }).value),
    )
    return colored?.flatMap((html) => linesOfMarkup(html, theme))
  }

  /** Resolves when code in this language can be highlighted, or when its grammar cannot be loaded. */
  load(name: CodeLanguage): Promise<void> {
    const loading = this.#loading.get(name) ?? this.#load(name)
    this.#loading.set(name, loading)
    return loading
  }

  async #load(name: CodeLanguage): Promise<void> {
    try {
      const [{ default: core }, { default: language }] = await Promise.all([
        import('highlight.js/lib/core'),
        languages[name](),
      ])
      this.#core ??= core.newInstance()
      this.#core.registerLanguage(name, language)
      // Compiles the grammar now, and not while a frame is drawn.
      this.#core.highlight(' ', { language: name })
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
} satisfies Record<CodeLanguage, () => Promise<{ default: LanguageFn }>>

/** Colored pieces, in lines. */
function linesOfMarkup(html: string, { syntax }: Pick<Theme, 'syntax'>): StyledLine[] {
  const lines: Span[][] = [[]]
  for (const { text, scope } of codePieces(html, (each) => Object.hasOwn(syntax, each))) {
    const style = scope === undefined ? undefined : syntax[scope]
    const [first = '', ...rest] = text.split('\n')
    lines.at(-1)?.push({ text: first, style })
    for (const each of rest) lines.push([{ text: each, style }])
  }
  return lines
}
