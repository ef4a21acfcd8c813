import { themeFor, type Theme, type ThemeName } from '../theme.ts'

/** How the chat looks now. It may change while it is shown. */
export class Appearance {
  readonly colour: boolean
  /** The same object for good: it dresses text as the theme of the moment does. Whoever keeps what was dressed is told of a change. */
  readonly theme: Theme
  #name: ThemeName
  #current: Theme

  constructor({ theme, colour }: { theme: ThemeName; colour: boolean }) {
    this.colour = colour
    this.#name = theme
    this.#current = themeFor({ theme, colour })
    this.theme = following(() => this.#current)
  }

  get name(): ThemeName {
    return this.#name
  }

  change(name: ThemeName): void {
    this.#name = name
    this.#current = themeFor({ theme: name, colour: this.colour })
  }
}

function following(current: () => Theme): Theme {
  const { syntax: _, ...styles } = current()
  const names = Object.keys(styles) as (keyof typeof styles)[]
  const live = Object.fromEntries(names.map((name) => [name, (text: string) => current()[name](text)]))
  return Object.defineProperty(live, 'syntax', { get: () => current().syntax }) as unknown as Theme
}
