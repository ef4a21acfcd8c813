/** A piece of highlighted code. `scope` is its kind, such as `keyword` or `selector-tag`. */
export interface CodePiece {
  text: string
  scope?: string
}

/** The languages that screens color. Each bundle imports the grammars itself. */
export const codeLanguages = [
  'bash',
  'c',
  'cpp',
  'csharp',
  'css',
  'diff',
  'dockerfile',
  'go',
  'ini',
  'java',
  'javascript',
  'json',
  'kotlin',
  'markdown',
  'php',
  'python',
  'ruby',
  'rust',
  'sql',
  'swift',
  'typescript',
  'xml',
  'yaml',
] as const

export type CodeLanguage = (typeof codeLanguages)[number]

/** The language of a code block from the words after its opening fence. Undefined if no screen colors it. */
export function codeLanguage(info: string): CodeLanguage | undefined {
  const [word = ''] = info
    .trim()
    .toLowerCase()
    .split(/[\s,{]/)
  return aliases.get(word) ?? codeLanguages.find((name) => name === word)
}

const aliases: ReadonlyMap<string, CodeLanguage> = new Map([
  ['sh', 'bash'],
  ['shell', 'bash'],
  ['console', 'bash'],
  ['zsh', 'bash'],
  ['h', 'c'],
  ['c++', 'cpp'],
  ['cc', 'cpp'],
  ['hpp', 'cpp'],
  ['cs', 'csharp'],
  ['scss', 'css'],
  ['patch', 'diff'],
  ['docker', 'dockerfile'],
  ['golang', 'go'],
  ['toml', 'ini'],
  ['js', 'javascript'],
  ['jsx', 'javascript'],
  ['mjs', 'javascript'],
  ['jsonc', 'json'],
  ['jsonl', 'json'],
  ['kt', 'kotlin'],
  ['md', 'markdown'],
  ['py', 'python'],
  ['rb', 'ruby'],
  ['rs', 'rust'],
  ['ts', 'typescript'],
  ['tsx', 'typescript'],
  ['mts', 'typescript'],
  ['html', 'xml'],
  ['svg', 'xml'],
  ['vue', 'xml'],
  ['yml', 'yaml'],
])

/** The time of a grammar is quadratic in the line length, so code with longer lines is not colored. */
export const longCodeLine = /.{500}/

/**
 * Reads the HTML of highlight.js: spans with a class, and escaped special characters. It is never inserted into a page.
 * A scope that `isKnown` rejects has the scope around it.
 */
export function codePieces(html: string, isKnown: (scope: string) => boolean = () => true): CodePiece[] {
  const pieces: CodePiece[] = []
  const scopes: (string | undefined)[] = []
  for (const [piece, classes] of html.matchAll(markup)) {
    if (classes !== undefined) {
      // `hljs-title function_` is a title.
      const scope = /^hljs-([a-z_-]+)/.exec(classes)?.[1]
      scopes.push(scope !== undefined && isKnown(scope) ? scope : scopes.at(-1))
    } else if (piece === '</span>') scopes.pop()
    else {
      const text = characters.get(piece) ?? piece
      const scope = scopes.at(-1)
      const last = pieces.at(-1)
      if (last && last.scope === scope) last.text += text
      else pieces.push(scope === undefined ? { text } : { text, scope })
    }
  }
  return pieces
}

const markup = /<span class="([^"]*)">|<\/span>|&(?:amp|lt|gt|quot|#x27);|[^<&]+/g
const characters: ReadonlyMap<string, string> = new Map([
  ['&amp;', '&'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&quot;', '"'],
  ['&#x27;', "'"],
])
