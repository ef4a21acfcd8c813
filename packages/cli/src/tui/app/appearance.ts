import { themeFor, type Colors, type Theme, type ThemeName } from '../theme.ts'

/** How the chat looks now. It may change while the chat is shown. */
export class Appearance {
  readonly color: boolean
  /** Always the same object: it styles text with the current theme. Caches of styled text are notified of a change. */
  readonly theme: Theme
  readonly #isTrueColor: boolean
  #name: ThemeName
  #isChanged = false
  #current: Theme

  constructor(colors: Colors) {
    this.color = colors.color
    this.#isTrueColor = colors.isTrueColor ?? false
    this.#name = colors.theme
    this.#current = themeFor(colors)
    this.theme = following(() => this.#current)
  }

  get name(): ThemeName {
    return this.#name
  }

  /** Whether another theme was ever chosen than that of the start. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  change(name: ThemeName): void {
    this.#isChanged = true
    this.#name = name
    this.#current = themeFor({ theme: name, color: this.color, isTrueColor: this.#isTrueColor })
  }
}

function following(current: () => Theme): Theme {
  const { syntax: _, ...styles } = current()
  const names = Object.keys(styles) as (keyof typeof styles)[]
  const live = Object.fromEntries(names.map((name) => [name, (text: string) => current()[name](text)]))
  return Object.defineProperty(live, 'syntax', { get: () => current().syntax }) as unknown as Theme
}
