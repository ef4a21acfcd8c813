import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Page } from 'playwright-core'
import { bundleWeb } from '../../../scripts/build-web.ts'
import type { ScreenName } from './hostile-screens.ts'

export interface Mutant {
  name: string
  /** Serves the page without its policy. */
  withoutPolicy?: true
  /** What is broken. Absent: only the policy is, or the change of the mutant before it knows this one. */
  change?: { file: string; from: string; to: string }
  /** Where it shows. Absent: in a transcript. */
  screen?: ScreenName
}

/** Mistakes that the proof must find. Each takes effect only in a page that sets `mutant` to its name, so one build has them all. */
export const mutants: readonly Mutant[] = [
  { name: 'no policy', withoutPolicy: true },
  {
    name: 'HTML passed through',
    change: {
      file: 'markdown/markdown.tsx',
      from: '<p className="source">{token.raw}</p>',
      to: `(
        String(globalThis.mutant).startsWith('HTML passed through') ? <p dangerouslySetInnerHTML={{ __html: token.raw }} />
        : globalThis.mutant === 'SVG shown as an object' && token.raw.startsWith('<svg')
          ? <object data={'data:image/svg+xml,' + encodeURIComponent(token.raw)} />
          : <p className="source">{token.raw}</p>
      )`,
    },
  },
  { name: 'HTML passed through, no policy', withoutPolicy: true },
  { name: 'SVG shown as an object' },
  {
    name: 'any scheme in a link',
    change: {
      file: 'markdown/safe-url.ts',
      from: 'allowed.has(url.protocol)',
      to: '(MUTANT || allowed.has(url.protocol))',
    },
  },
  {
    name: 'images loaded',
    change: {
      file: 'markdown/markdown.tsx',
      from: "case 'image':",
      to: "case 'image':\n      if (MUTANT) return <img alt=\"\" src={String(known['href'])} />",
    },
  },
  {
    name: 'inline HTML in a frame',
    change: {
      file: 'markdown/markdown.tsx',
      from: 'default:\n      return token.raw',
      to: 'default:\n      return MUTANT ? <iframe srcDoc={token.raw} /> : token.raw',
    },
  },
  {
    name: 'attributes from a title',
    change: {
      file: 'markdown/markdown.tsx',
      from: '<a href={url}',
      to: '<a ref={(element) => { if (MUTANT) for (const [, name, value] of href.matchAll(/(on\\w+)=["\']?([^\\s"\'>]+)/g)) element?.setAttribute(name, value) }} href={url}',
    },
  },
  {
    name: 'links open in this page',
    change: { file: 'markdown/markdown.tsx', from: 'target="_blank"', to: "target={MUTANT ? '_self' : '_blank'}" },
  },
  {
    name: 'ids from headings',
    change: {
      file: 'markdown/markdown.tsx',
      from: '<Tag>{children}</Tag>',
      to: "<Tag id={MUTANT ? 'pair' : undefined}>{children}</Tag>",
    },
  },
  {
    name: 'language of code as HTML',
    withoutPolicy: true,
    change: {
      file: 'markdown/code-block.tsx',
      from: '<span>{language}</span>',
      to: '{MUTANT ? <span dangerouslySetInnerHTML={{ __html: language }} /> : <span>{language}</span>}',
    },
  },
  asMarkup('tree', 'tree/tree-screen.tsx', '<span className="text">{row.entry.preview || \'(no text)\'}</span>'),
  asMarkup('player', 'player/player-screen.tsx', '<b>{event.name}</b>'),
  asMarkup('context', 'context/context-screen.tsx', '<span className="preview">{preview}</span>'),
  asMarkup('jobs', 'session/jobs.tsx', '<code>{name}</code>'),
  asMarkup('compare', 'compare/compare-screen.tsx', '<div className="plain">{entry.preview || \'(no text)\'}</div>'),
  asMarkup('devices', 'settings/devices.tsx', '<b>{token.name ?? token.id}</b>'),
  asMarkup('usage', 'settings/usage.tsx', '<th scope="row">{bar.name}</th>'),
  asMarkup('search', 'list/search-results.tsx', '<b>{title}</b>'),
  asMarkup('changed files', 'compare/compare-screen.tsx', '<code>{spellInvisible(path)}</code>'),
  asMarkup('rewind', 'session/rewind.tsx', '<code>{spellInvisible(path)}</code>'),
  asMarkup('archive', 'list/stored-sessions.tsx', '<b>{titleOf(session)}</b>'),
  {
    name: 'names of folders as markup',
    screen: 'folders',
    change: {
      file: 'list/new-session.tsx',
      from: '{folder.name}/',
      to: '{MUTANT ? <i dangerouslySetInnerHTML={{ __html: folder.name }} /> : folder.name}/',
    },
  },
  {
    name: 'announcements as markup',
    screen: 'live region',
    change: {
      file: 'app.tsx',
      from: '{announcement}\n',
      to: '{MUTANT ? <i dangerouslySetInnerHTML={{ __html: announcement }} /> : announcement}\n',
    },
  },
]

/** An element of a screen, `<tag …>{text}</tag>`, whose text becomes markup. */
function asMarkup(screen: ScreenName, file: string, element: string): Mutant {
  const [, start = '', text = ''] = /^(<[^>]+)>\{(.+)\}<\/\w+>$/.exec(element) ?? []
  return {
    name: `text of the screen "${screen}" as markup`,
    screen,
    change: {
      file,
      from: element,
      to: `{MUTANT ? ${start} dangerouslySetInnerHTML={{ __html: ${text} }} /> : ${element}}`,
    },
  }
}

/** A build with all mutants, which a page can load instead of the real one. */
export class MutantBuild implements AsyncDisposable {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async make(): Promise<MutantBuild> {
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-mutants-'))
    await bundleWeb(folder, [{ name: 'mutants', enforce: 'pre', transform: mutated }])
    return new MutantBuild(folder)
  }

  /** The page gets this build from now on, and everything else from the server. */
  async load(page: Page, { name, withoutPolicy }: Mutant): Promise<void> {
    await page.addInitScript(`globalThis.mutant = ${JSON.stringify(name)}`)
    await page.route(
      (url) => /\/assets\/[^/]+$/.test(url.pathname),
      async (route) => {
        const file = join(this.#folder, 'assets', basename(new URL(route.request().url()).pathname))
        await route.fulfill({
          body: await readFile(file),
          contentType: file.endsWith('.css') ? 'text/css' : 'text/javascript',
        })
      },
    )
    await page.route(
      (url) => url.pathname === '/',
      async (route) => {
        const response = await route.fetch()
        const { 'content-security-policy': policy = '', ...others } = response.headers()
        const headers = withoutPolicy ? others : { ...others, 'content-security-policy': policy }
        await route.fulfill({ response, headers, body: await readFile(join(this.#folder, 'index.html')) })
      },
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Fails if the code that a mutant breaks has changed: then the mutant must, too. */
function mutated(code: string, id: string): string | undefined {
  const here = mutants.filter(({ change }) => change !== undefined && id.endsWith(`/web/src/${change.file}`))
  if (here.length === 0) return undefined
  return here.reduce((text, { name, change }) => {
    if (!change || !text.includes(change.from)) throw new Error(`The mutant "${name}" does not fit ${id} any more.`)
    return text.replace(change.from, () =>
      change.to.replaceAll('MUTANT', `(globalThis.mutant === ${JSON.stringify(name)})`),
    )
  }, code)
}
