// Search, light and dark, the menu of narrow screens. A plain script: a page that was opened from a folder may not load modules.
;(() => {
  const page = document.documentElement
  const script = /** @type {HTMLScriptElement} */ (document.currentScript)
  const assets = script.src.slice(0, script.src.lastIndexOf('/'))

  /** Storage may be forbidden, as it is for pages in a folder in some browsers. */
  const remembered = (value) => {
    try {
      if (value !== undefined) localStorage.setItem('theme', value)
      return localStorage.getItem('theme') ?? ''
    } catch {
      return ''
    }
  }
  page.style.colorScheme = remembered()

  const MOST = 12
  let loading

  function load() {
    loading ??= new Promise((resolve, reject) => {
      const element = document.createElement('script')
      element.src = `${assets}/search-index.js`
      element.onload = () => resolve(globalThis.searchIndex)
      element.onerror = reject
      document.head.append(element)
    })
    return loading
  }

  /** The sections that have every word of the query; the last word may be the beginning of one. */
  function find({ sections, words }, query) {
    const asked = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []
    let scores
    for (const word of asked) {
      const found = new Map()
      for (const known of Object.keys(words)) {
        if (!known.startsWith(word)) continue
        const factor = known === word ? 3 : 1
        for (let at = 0; at < words[known].length; at += 2) {
          const section = words[known][at]
          found.set(section, Math.max(found.get(section) ?? 0, words[known][at + 1] * factor))
        }
      }
      const before = scores
      scores = before ? new Map([...found].filter(([id]) => before.has(id)).map(([id, score]) => [id, score + before.get(id)])) : found
    }
    return [...(scores ?? [])]
      .sort((one, other) => other[1] - one[1])
      .slice(0, MOST)
      .map(([id]) => sections[id])
  }

  function show(list, found, query) {
    list.replaceChildren(
      ...found.map(([url, title, heading, excerpt]) => {
        const link = document.createElement('a')
        const small = document.createElement('small')
        link.href = `${assets}/../${url}`
        link.append(heading === '' ? title : `${title} › ${heading}`, small)
        small.textContent = excerpt
        const item = document.createElement('li')
        item.append(link)
        return item
      }),
    )
    if (found.length === 0 && query !== '') {
      const none = document.createElement('li')
      none.className = 'none'
      none.textContent = 'Nothing found.'
      list.append(none)
    }
    list.hidden = query === ''
  }

  document.addEventListener('DOMContentLoaded', () => {
    const input = document.querySelector('.search input')
    const list = document.querySelector('#results')
    const menu = document.querySelector('.menu')

    input.addEventListener('focus', () => void load())
    const search = async () => {
      const index = await load()
      const query = input.value.trim()
      show(list, find(index, query), query)
    }
    input.addEventListener('input', () => void search())
    document.querySelector('.search').addEventListener('keydown', (event) => {
      const links = [...list.querySelectorAll('a')]
      const at = links.indexOf(document.activeElement)
      if (event.key === 'Escape') {
        input.value = ''
        list.hidden = true
        input.blur()
      } else if (event.key === 'Enter' && at < 0) links[0]?.click()
      else if (event.key === 'ArrowDown') (links[at + 1] ?? links[0])?.focus()
      else if (event.key === 'ArrowUp') (links[at - 1] ?? input).focus()
      else return
      event.preventDefault()
    })
    document.addEventListener('keydown', (event) => {
      if (event.key !== '/' || event.target.matches('input')) return
      event.preventDefault()
      input.focus()
    })
    document.addEventListener('click', (event) => {
      if (!event.target.closest('.search')) list.hidden = true
    })

    document.querySelector('.theme').addEventListener('click', () => {
      const dark = page.style.colorScheme ? page.style.colorScheme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
      page.style.colorScheme = dark ? 'light' : 'dark'
      remembered(page.style.colorScheme)
    })
    menu.addEventListener('click', () => menu.setAttribute('aria-expanded', String(page.classList.toggle('open'))))
    document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' })

    if (navigator.clipboard) {
      for (const block of document.querySelectorAll('pre')) {
        const button = document.createElement('button')
        button.className = 'copy'
        button.type = 'button'
        button.textContent = 'Copy'
        const copy = async () => {
          await navigator.clipboard.writeText(block.querySelector('code').textContent)
          button.textContent = 'Copied'
        }
        button.addEventListener('click', () => void copy())
        block.append(button)
      }
    }
  })
})()
