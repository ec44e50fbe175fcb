"use strict";
(() => {
  const started = performance.now();
  const byId = (name) => document.getElementById(name);
  const source = document.documentElement.outerHTML;  // as it was sent, for a copy with names
  const data = JSON.parse(byId("data").textContent);

  // Bytes of the page, as arrays

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const words = (text, Kind) => new Kind(bytes(text).buffer);
  const n = data.n;
  const rows = words(data.rows, Uint32Array);
  const own = words(data.labels, Uint16Array);
  const sure = bytes(data.sure);
  const nowhere = bytes(data.nowhere);
  const views = data.views.map((v) => ({
    name: v.name, axes: v.axes, x: words(v.x, Uint16Array), y: words(v.y, Uint16Array), wide: v.wide, tall: v.tall,
    even: v.even,
  }));
  const columns = data.columns.map((c) => ({ ...c, codes: bytes(c.codes) }));
  const MISSING = 255, NONE = 65535;

  // What is shown now

  const canvas = byId("map"), tip = byId("tip"), state = byId("state");
  const pen = canvas.getContext("2d");
  const centre = (v) => [v.wide / 2, v.tall / 2];
  let view = 0, colour = "cluster", zoom = 1, middle = centre(views[0]), labels = own, chosen = null, focus = -1;
  let lassoing = false, loop = null, colours = {}, stacks = null, boxes = [];

  // Lists to choose from

  const choice = (text, value) => Object.assign(document.createElement("option"), { textContent: text, value });
  byId("view").append(...views.map((v, j) => choice(v.name, j)));
  byId("view").parentElement.hidden = views.length < 2;
  const group = Object.assign(document.createElement("optgroup"), { label: "columns that separate most" });
  group.append(...columns.map((column, j) => choice(column.name, j)));
  if (columns.length) byId("colour").append(group);
  const fields = [...document.querySelectorAll(".naming")], shown = fields.map((field) => field.dataset.cluster);
  const legend = document.querySelector(".legend");
  fields.forEach((field, j) => {
    const line = document.createElement("li"), rows = document.createElement("span");
    line.dataset.row = shown[j];
    rows.className = "faded";
    line.append(...[...field.closest("tr").cells[0].childNodes].map((part) => part.cloneNode(true)), " ", rows);
    legend.append(line);
  });
  byId("chosen").append(...shown.map((j) => choice(`cluster ${j}`, j)), choice("rows that fit nowhere well", "nowhere"));

  // Names that the reader gives to clusters

  const store = `biclique ${data.key} ${data.clusters} ${data.all}`;
  let names = {};
  const nameOf = (label) => (names[label] ? `${label} ${names[label]}` : String(label));

  function readNames() {
    names = JSON.parse(byId("names").textContent);
    try {
      names = JSON.parse(localStorage.getItem(store)) || names;
    } catch { /* a browser that keeps nothing */ }
  }

  function showNames() {
    for (const place of document.querySelectorAll("[data-name]")) place.textContent = names[place.dataset.name] || "";
    for (const option of byId("chosen").options) {
      if (/^\d+$/.test(option.value)) option.textContent = `cluster ${nameOf(option.value)}`;
    }
    byId("naming-help").hidden = !Object.keys(names).length;
  }

  for (const field of fields) {
    field.disabled = false;
    field.addEventListener("input", () => {
      const { cluster } = field.dataset, name = field.value.trim();
      if (name) names[cluster] = name;
      else delete names[cluster];
      try {
        localStorage.setItem(store, JSON.stringify(names));
      } catch { /* a browser that keeps nothing */ }
      showNames();
      drawMatrix();
      redraw();
    });
  }

  function download(text, type, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  byId("save").addEventListener("click", () => {
    const written = JSON.stringify(names).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
    const copy = source.replace(/(id="names">)[^<]*/, (_, start) => start + written);
    download(`<!DOCTYPE html>\n${copy}`, "text/html", `${document.title} with names.html`);
  });

  byId("labels").addEventListener("click", () => {
    const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
    const lines = ["row,id,cluster,name,probability"];
    for (let i = 0; i < n; i++) {
      const id = data.ids ? data.ids[i] : "";
      lines.push([rows[i], id, own[i], names[own[i]] || "", (sure[i] / 255).toFixed(2)].map(cell).join(","));
    }
    download(`${lines.join("\n")}\n`, "text/csv", "labels.csv");
    state.textContent = n < data.all ? `Labels of the ${n} drawn rows of ${data.all}.` : `Labels of ${n} rows.`;
  });

  const identity = (i) => (data.ids ? data.ids[i] : `row ${rows[i]}`);
  const copied = (i) => (data.ids && data.exactIds ? data.ids[i] : String(rows[i]));

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    colours = { clusters: [] };
    for (let j = 0; j < data.colours; j++) colours.clusters.push(get(`--c${j}`));
    for (const name of ["ground", "text", "low", "middle", "high", "dim", "accent", "faded"]) {
      colours[name] = get(`--${name}`);
    }
  }

  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const pack = ([r, g, b]) => (255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r);
  const mixed = (a, b, share) => a.map((value, j) => value + (b[j] - value) * share);

  function ramp(share) {
    const [low, mid, high] = [colours.low, colours.middle, colours.high].map(rgb);
    return share < 0.5 ? mixed(low, mid, 2 * share) : mixed(mid, high, 2 * share - 1);
  }

  // Places on the canvas

  const size = () => [canvas.width, canvas.height];
  const ratio = () => canvas.width / Math.max(canvas.clientWidth, 1);

  function scales() {
    const [width, height] = size(), v = views[view], edge = 32 * ratio();
    const across = (width - 2 * edge) / Math.max(v.wide, 1e-9), up = (height - 2 * edge) / Math.max(v.tall, 1e-9);
    const both = Math.min(across, up);
    return (v.even ? [both, both] : [across, up]).map((s) => s * zoom);
  }

  function transform() {
    const [width, height] = size(), [sx, sy] = scales();
    return { ax: sx / 65535, bx: width / 2 - middle[0] * sx, ay: -sy / 65535, by: height / 2 + middle[1] * sy };
  }

  function where(i) {
    const t = transform(), v = views[view];
    return [t.bx + t.ax * v.x[i], t.by + t.ay * v.y[i]];
  }

  // Marks: a list of offsets for each shape

  function stamps(radius) {
    const found = [];
    for (let shape = 0; shape < data.shapes; shape++) {
      const offsets = [];
      const r = Math.ceil(radius * 1.25);
      for (let y = -r; y <= r; y++) {
        for (let x = -r; x <= r; x++) {
          const fx = x / radius, fy = y / radius;
          const inside = [
            fx * fx + fy * fy <= 1,
            Math.max(Math.abs(fx), Math.abs(fy)) <= 0.86,
            fy <= 0.9 && fy >= -1.1 + 2 * Math.abs(fx),
            Math.abs(fx) + Math.abs(fy) <= 1.2,
            fy >= -0.9 && fy <= 1.1 - 2 * Math.abs(fx),
          ][shape];
          if (inside) offsets.push([x, y]);
        }
      }
      found.push(offsets);
    }
    return found;
  }

  function colourTable() {
    const ground = rgb(colours.ground);
    const fade = (c) => [pack(c), pack(mixed(c, ground, 0.82))];
    const dim = fade(rgb(colours.dim));
    if (colour === "cluster") {
      const table = colours.clusters.map((hex) => fade(rgb(hex)));
      return (i) => (labels[i] === NONE ? dim : table[labels[i] % data.colours]);
    }
    if (colour === "sure") {
      const table = Array.from({ length: 256 }, (_, j) => fade(ramp(j / 255)));
      return (i) => table[sure[i]];
    }
    const column = columns[Number(colour)], last = Math.max(column.values.length - 1, 1);
    const table = column.values.map((_, j) =>
      fade(column.category ? rgb(colours.clusters[j % data.colours]) : ramp(j / last)));
    return (i) => (column.codes[i] === MISSING ? dim : table[column.codes[i]]);
  }

  // Rows at one place that look alike are one mark, whose area says how many; small marks lie on large ones
  const LARGEST = 6;
  const markRadius = () => (n > 8000 ? 2 : n > 1500 ? 2.8 : 4) * ratio() * Math.min(Math.sqrt(zoom), 2);

  function stacked() {
    const found = new Map(), of = colourTable(), v = views[view];
    for (let i = 0; i < n; i++) {
      const behind = labels[i] === NONE || Boolean(chosen && !chosen[i]);
      const ink = of(i)[chosen && !chosen[i] ? 1 : 0], shape = (labels[i] === NONE ? 0 : labels[i]) % data.shapes;
      const key = `${v.x[i]} ${v.y[i]} ${shape} ${ink}`;
      if (found.has(key)) found.get(key).count += 1;
      else found.set(key, { row: i, count: 1, ink, shape, behind });
    }
    return [...found.values()].sort((a, b) => b.behind - a.behind || b.count - a.count);
  }

  let asked = false;
  function recolour() {
    stacks = null;
    redraw();
  }

  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }

  function draw() {
    const [width, height] = size();
    if (!width || !height) return;
    const image = pen.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(pack(rgb(colours.ground)));
    const ground = pixels[0], radius = markRadius(), t = transform(), v = views[view], marks = new Map();
    stacks = stacks || stacked();
    for (const { row, count, ink, shape } of stacks) {
      const cx = Math.round(t.bx + t.ax * v.x[row]), cy = Math.round(t.by + t.ay * v.y[row]);
      if (cx < -60 || cy < -60 || cx > width + 60 || cy > height + 60) continue;
      const r = Math.round(2 * radius * Math.min(Math.sqrt(count), LARGEST)) / 2;
      if (!marks.has(r)) marks.set(r, stamps(r));
      for (const [dx, dy] of marks.get(r)[shape]) {
        const x = cx + dx, y = cy + dy;
        if (x >= 0 && y >= 0 && x < width && y < height) pixels[y * width + x] = ink;
      }
    }
    pen.putImageData(image, 0, 0);
    drawNames((x, y) => pixels[y * width + x] !== ground);
    drawAxes();
    if (focus >= 0) ring(focus);
    if (loop) {
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2 * ratio();
      pen.stroke(along(loop));
    }
  }

  function ring(i) {
    const [x, y] = where(i);
    pen.strokeStyle = colours.text;
    pen.lineWidth = 2 * ratio();
    pen.beginPath();
    pen.arc(x, y, 8 * ratio(), 0, 2 * Math.PI);
    pen.stroke();
  }

  // The number and name of each cluster, as near to the median of its points as there is room without marks
  function drawNames(painted) {
    if (data.clusters > 60) return;
    const t = transform(), v = views[view], groups = new Map(), [width, height] = size();
    for (let i = 0; i < n; i++) {
      if (labels[i] === NONE) continue;
      if (!groups.has(labels[i])) groups.set(labels[i], [[], []]);
      const group = groups.get(labels[i]);
      group[0].push(v.x[i]);
      group[1].push(v.y[i]);
    }
    const half = (list) => list.sort((a, b) => a - b)[list.length >> 1];
    pen.font = `700 ${15 * ratio()}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    const taken = boxes = [], step = 9 * ratio(), tall = 10 * ratio();
    const covered = (x, y, wide) => {
      if (x < wide || y < tall || x > width - wide || y > height - tall) return Infinity;
      if (taken.some(([a, b, w]) => Math.abs(a - x) < w + wide && Math.abs(b - y) < 2 * tall)) return Infinity;
      let found = 0;
      for (let py = y - tall; py <= y + tall; py += 2) {
        for (let px = x - wide; px <= x + wide; px += 2) found += painted(Math.round(px), Math.round(py)) ? 1 : 0;
      }
      return found;
    };
    for (const label of [...groups.keys()].sort((a, b) => a - b)) {
      const [xs, ys] = groups.get(label), text = nameOf(label), wide = pen.measureText(text).width / 2 + 3 * ratio();
      const x = t.bx + t.ax * half(xs), y = t.by + t.ay * half(ys);
      if (x < 0 || y < 0 || x > width || y > height) continue;
      let best = [x, y], least = Infinity;
      for (let ring = 0; ring < 30 && least; ring++) {
        for (let turn = 0; turn < 16 && least; turn++) {
          const angle = (turn * Math.PI) / 8 - Math.PI / 2;
          const place = [x + ring * step * Math.cos(angle), y + ring * step * Math.sin(angle)];
          const found = covered(...place, wide);
          if (found < least) [best, least] = [place, found];
        }
      }
      taken.push([...best, wide]);
      pen.strokeStyle = colours.text;
      pen.lineWidth = ratio();
      if (Math.hypot(best[0] - x, best[1] - y) > 3 * step) {
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(...best);
        pen.stroke();
      }
      pen.strokeStyle = colours.ground;
      pen.lineWidth = 4 * ratio();
      pen.strokeText(text, ...best);
      pen.fillStyle = colours.text;
      pen.fillText(text, ...best);
    }
  }

  function drawAxes() {
    const [across, up] = views[view].axes, [width, height] = size();
    pen.fillStyle = colours.faded;
    pen.font = `${12 * ratio()}px system-ui, sans-serif`;
    pen.textBaseline = "alphabetic";
    pen.textAlign = "right";
    if (across) pen.fillText(`${across} →`, width - 6 * ratio(), height - 6 * ratio());
    pen.textAlign = "left";
    if (up) pen.fillText(`↑ ${up}`, 6 * ratio(), 16 * ratio());
  }

  function resize() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
    if (width && height && (width !== canvas.width || height !== canvas.height)) {
      canvas.width = width;
      canvas.height = height;
    }
    draw();
  }

  // Reading a row

  const shortNumber = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : value);

  function valueText(column, i) {
    const code = column.codes[i];
    if (code === MISSING) return "missing";
    return (column.exact ? "" : "≈ ") + shortNumber(column.values[code]);
  }

  function isolated(name, text) {
    const found = document.createElement(name);
    found.textContent = text;
    return found;
  }

  function tell(i) {
    focus = i;
    tip.replaceChildren();
    if (i < 0) {
      tip.hidden = true;
      return;
    }
    const head = document.createElement("strong");
    head.append(isolated("bdi", identity(i)));
    const unsure = nowhere[i] ? "; fits nowhere well" : "";
    const label = labels[i] === NONE ? own[i] : labels[i];
    const v = views[view];
    let same = -1;
    for (let j = 0; j < n; j++) same += v.x[j] === v.x[i] && v.y[j] === v.y[i] ? 1 : 0;
    if (same) head.append(` and ${same} more at this place`);
    tip.append(head, `cluster ${nameOf(label)}, probability ${(sure[i] / 255).toFixed(2)}${unsure}`);
    const shown = columns.slice(0, 6);
    const extra = Number(colour);
    if (!["cluster", "sure"].includes(colour) && extra >= 6) shown.push(columns[extra]);
    for (const column of shown) {
      const line = document.createElement("div");
      line.append(isolated("bdi", column.name), ": ", isolated("bdi", valueText(column, i)));
      tip.append(line);
    }
    tip.hidden = false;
    const [x, y] = where(i).map((value) => value / ratio());
    const room = canvas.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(4, Math.min(x + 14, room))}px`;
    const below = y + 14 + tip.offsetHeight < canvas.clientHeight;
    tip.style.top = `${Math.max(4, below ? y + 14 : y - 14 - tip.offsetHeight)}px`;
  }

  function nearest(px, py, reach) {
    const t = transform(), v = views[view];
    let best = -1, least = reach * reach;
    for (let i = 0; i < n; i++) {
      const dx = t.bx + t.ax * v.x[i] - px, dy = t.by + t.ay * v.y[i] - py, gap = dx * dx + dy * dy;
      if (gap <= least) { least = gap; best = i; }
    }
    return best;
  }

  // Selecting rows

  const count = (list) => list.reduce((found, one) => found + one, 0);

  function select(list) {
    chosen = list;
    const found = chosen ? count(chosen) : 0;
    if (chosen && !found) chosen = null;
    const all = n < data.all ? ` of ${n} drawn` : ` of ${n}`;
    state.textContent = found ? `${found} rows selected${all}.` : "";
    byId("copy").disabled = !found;
    byId("ids").hidden = true;
    recolour();
  }

  function along(points) {
    const path = new Path2D();
    for (const point of points) path.lineTo(...point);
    return path;
  }

  function endLoop() {
    const points = loop, path = along(points), t = transform(), v = views[view];
    loop = null;
    if (points.length < 3) return redraw();
    const within = (i) => pen.isPointInPath(path, t.bx + t.ax * v.x[i], t.by + t.ay * v.y[i], "evenodd");
    byId("chosen").value = "";
    select(Uint8Array.from({ length: n }, (_, i) => within(i)));
  }

  async function copyText(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      done(true);
    } catch {
      done(false);
    }
  }

  byId("copy").addEventListener("click", () => {
    const list = [];
    for (let i = 0; i < n; i++) if (chosen[i]) list.push(copied(i));
    const box = byId("ids");
    box.value = list.join("\n");
    const what = data.ids && data.exactIds ? "ids" : "row numbers, counted from 0,";
    copyText(box.value, (there) => {
      state.textContent = there ? `${list.length} ${what} copied.` : `${list.length} ${what} to copy by hand:`;
      box.hidden = false;
      if (!there) { box.focus(); box.select(); }
    });
  });

  byId("copy-command").addEventListener("click", (event) => {
    copyText(byId("command").textContent, (there) => {
      event.target.textContent = there ? "Copied" : "Select the text above";
    });
  });

  byId("chosen").addEventListener("change", (event) => {
    const wanted = event.target.value;
    if (!wanted) return select(null);
    select(Uint8Array.from({ length: n }, (_, i) => (wanted === "nowhere" ? nowhere[i] : own[i] === Number(wanted) ? 1 : 0)));
  });

  // Moving about

  function zoomAt(factor, px = canvas.width / 2, py = canvas.height / 2) {
    const [width, height] = size(), [sx, sy] = scales(), next = Math.min(Math.max(zoom * factor, 0.5), 200);
    const dx = (px - width / 2) / sx, dy = (py - height / 2) / sy, moved = 1 - zoom / next;
    middle = [middle[0] + dx * moved, middle[1] - dy * moved];
    zoom = next;
    tell(-1);
    redraw();
  }

  function move(dx, dy) {
    const [sx, sy] = scales();
    middle = [middle[0] - dx / sx, middle[1] + dy / sy];
    redraw();
  }

  function reset() {
    zoom = 1;
    middle = centre(views[view]);
    tell(-1);
    redraw();
  }

  function setLasso(on) {
    lassoing = on;
    byId("lasso").setAttribute("aria-pressed", String(on));
    canvas.classList.toggle("drawing", on);
  }

  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * ratio(), (event.clientY - box.top) * ratio()];
  };
  let held = null, pinch = null, pinched = false;
  const fingers = new Map();

  // Of two fingers: how far apart, and the place between them
  function spread() {
    const [[ax, ay], [bx, by]] = [...fingers.values()];
    return { gap: Math.max(Math.hypot(ax - bx, ay - by), 1), at: [(ax + bx) / 2, (ay + by) / 2] };
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const at = spot(event);
    fingers.set(event.pointerId, at);
    canvas.setPointerCapture(event.pointerId);
    pinched = fingers.size > 1;
    pinch = fingers.size === 2 ? spread() : null;
    held = pinched ? null : at;
    loop = !pinched && (lassoing || event.shiftKey) ? [at] : null;
    if (pinched) { tell(-1); redraw(); }
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = spot(event);
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, at);
    if (pinch) {
      const now = spread();
      move(now.at[0] - pinch.at[0], now.at[1] - pinch.at[1]);
      zoomAt(now.gap / pinch.gap, ...now.at);
      pinch = now;
    } else if (loop) {
      loop.push(at);
      redraw();
    } else if (held) {
      move(at[0] - held[0], at[1] - held[1]);
      held = at;
      tell(-1);
    } else if (!fingers.size) {
      const i = nearest(at[0], at[1], 12 * ratio());
      if (i !== focus) {
        tell(i);
        redraw();
      }
    }
  });
  // A finger that stays after a pinch goes on moving the map, and reads no mark when it is lifted.
  function lift(event) {
    fingers.delete(event.pointerId);
    pinch = fingers.size === 2 ? spread() : null;
    held = fingers.size === 1 ? [...fingers.values()][0] : null;
  }
  canvas.addEventListener("pointerup", (event) => {
    const at = spot(event);
    if (loop) endLoop();
    else if (held && !pinched && event.pointerType === "touch") { tell(nearest(at[0], at[1], 24 * ratio())); redraw(); }
    lift(event);
  });
  canvas.addEventListener("pointercancel", (event) => { loop = null; lift(event); redraw(); });
  // One finger may scroll the page, two are for the map.
  canvas.addEventListener("touchmove", (event) => {
    if (event.touches.length > 1 && event.cancelable) event.preventDefault();
  }, { passive: false });
  // A finger leaves the map whenever it is lifted: what it has read stays.
  canvas.addEventListener("pointerleave", (event) => {
    if (!held && event.pointerType !== "touch") { tell(-1); redraw(); }
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY / 400), ...spot(event));
  }, { passive: false });

  function stepRow(by) {
    const [width, height] = size(), first = focus < 0 ? (by > 0 ? -1 : n) : focus;
    for (let tries = 1; tries <= n; tries++) {
      const i = (((first + by * tries) % n) + n) % n, [x, y] = where(i);
      if (x >= 0 && y >= 0 && x <= width && y <= height) {
        tell(i);
        return redraw();
      }
    }
  }

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = 40 * ratio();
    const keys = {
      ArrowLeft: () => move(far, 0), ArrowRight: () => move(-far, 0), ArrowUp: () => move(0, far),
      ArrowDown: () => move(0, -far), "+": () => zoomAt(1.3), "=": () => zoomAt(1.3), "-": () => zoomAt(1 / 1.3),
      0: reset, n: () => stepRow(1), N: () => stepRow(1), p: () => stepRow(-1), P: () => stepRow(-1),
      Escape: () => { loop = null; byId("chosen").value = ""; select(null); tell(-1); },
    };
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  canvas.addEventListener("blur", () => { tell(-1); redraw(); });
  byId("closer").addEventListener("click", () => zoomAt(1.3));
  byId("farther").addEventListener("click", () => zoomAt(1 / 1.3));
  byId("reset").addEventListener("click", reset);
  byId("lasso").addEventListener("click", () => setLasso(!lassoing));
  byId("view").addEventListener("change", (event) => { view = Number(event.target.value); stacks = null; reset(); });

  // Colours

  function drawScale() {
    const box = byId("scale");
    box.replaceChildren();
    box.hidden = colour === "cluster";
    if (box.hidden) return;
    if (colour !== "sure" && columns[Number(colour)].category) {
      const column = columns[Number(colour)];
      const many = column.values.length > data.colours ? ", colours repeat" : "";
      box.append("Levels", many, ": ", isolated("bdi", column.values.slice(0, 12).join(", ")));
      return;
    }
    const strip = document.createElement("canvas");
    strip.width = 128;
    strip.height = 1;
    const ink = strip.getContext("2d"), image = ink.createImageData(128, 1);
    const pixels = new Uint32Array(image.data.buffer);
    for (let j = 0; j < 128; j++) pixels[j] = pack(ramp(j / 127));
    ink.putImageData(image, 0, 0);
    const values = colour === "sure" ? [0, 0.5, 1] : columns[Number(colour)].values;
    const half = shortNumber(values[values.length >> 1]);
    box.append(String(shortNumber(values[0])), strip, String(shortNumber(values[values.length - 1])));
    box.append(` (middle: ${half}; colours follow the ${colour === "sure" ? "value" : "rank of the value"})`);
  }

  byId("colour").addEventListener("change", (event) => {
    colour = event.target.value;
    drawScale();
    recolour();
  });

  // Rows of every cluster: of all rows, or of those that are clustered anew
  function drawLegend() {
    const sizes = labels === own ? data.sizes : new Array(data.clusters).fill(0);
    if (labels !== own) for (const label of labels) if (label !== NONE) sizes[label] += 1;
    for (const line of legend.children) {
      line.querySelector(".faded").textContent = `(${sizes[line.dataset.row].toLocaleString("en")})`;
    }
  }

  if (data.path) {
    const places = words(data.path.places, Uint32Array);
    const slider = byId("order"), note = byId("order-note");
    slider.parentElement.hidden = false;
    slider.max = data.path.orders.length - 1;
    slider.value = data.path.own;
    byId("order-value").textContent = data.path.orders[data.path.own];
    slider.addEventListener("input", () => {
      const at = Number(slider.value), text = data.path.orders[at];
      byId("order-value").textContent = text;
      slider.setAttribute("aria-valuetext", `order ${text}`);
      if (at === data.path.own) {
        labels = own;
        note.hidden = true;
      } else {
        labels = new Uint16Array(n).fill(NONE);
        const other = words(data.path.labels[at], Uint16Array);
        places.forEach((place, j) => { labels[place] = other[j]; });
        note.textContent = `Order ${text}: ${places.length} rows, clustered anew.` +
          (places.length < n ? " The other rows are grey." : "");
        note.hidden = false;
      }
      colour = "cluster";
      byId("colour").value = "cluster";
      drawScale();
      drawLegend();
      recolour();
    });
  }

  // Similarities

  function drawMatrix() {
    if (!data.matrix) return;
    const board = byId("matrix"), m = data.matrix.size, cells = bytes(data.matrix.cells);
    const scale = Math.min(window.devicePixelRatio || 1, 2), edge = Math.round(26 * scale);
    const whole = Math.round(board.clientWidth * scale), at = (place) => edge + Math.round((place / m) * (whole - edge));
    if (!whole) return;
    board.width = board.height = whole;
    const ink = board.getContext("2d"), image = ink.createImageData(m, m), pixels = new Uint32Array(image.data.buffer);
    const low = rgb(colours.ground), high = rgb(colours.text);
    const table = Array.from({ length: 256 }, (_, j) => pack(mixed(low, high, j / 255)));
    pixels.forEach((_, j) => { pixels[j] = table[cells[j]]; });
    const small = document.createElement("canvas");
    small.width = small.height = m;
    small.getContext("2d").putImageData(image, 0, 0);
    ink.imageSmoothingEnabled = false;
    ink.drawImage(small, edge, edge, whole - edge, whole - edge);
    ink.font = `600 ${13 * scale}px system-ui, sans-serif`;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    const list = data.matrix.clusters;
    for (let start = 0, end; start < m; start = end) {
      end = start;
      while (end < m && list[end] === list[start]) end++;
      const middle = (at(start) + at(end)) / 2;
      ink.fillStyle = colours.text;
      if (at(end) - at(start) >= 12 * scale) {
        ink.fillText(nameOf(list[start]), middle, edge / 2, at(end) - at(start));
        ink.fillText(String(list[start]), edge / 2, middle);
      }
      ink.fillStyle = colours.accent;  // a line of whole pixels
      if (end < m) {
        ink.fillRect(edge, at(end), whole - edge, Math.ceil(scale));
        ink.fillRect(at(end), edge, Math.ceil(scale), whole - edge);
      }
    }
  }

  // Light, dark, paper

  function repaint() {
    readColours();
    stacks = null;
    drawScale();
    drawMatrix();
    resize();
  }
  const root = document.documentElement;
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.addEventListener("beforeprint", () => { root.classList.add("light"); tell(-1); repaint(); });
  window.addEventListener("afterprint", () => { root.classList.remove("light"); repaint(); });
  new ResizeObserver(resize).observe(canvas);
  if (data.matrix) new ResizeObserver(drawMatrix).observe(byId("matrix"));
  if (data.ids === null || !data.exactIds) byId("copy").textContent = "Copy row numbers";
  readNames();
  drawLegend();
  for (const field of fields) field.value = names[field.dataset.cluster] || "";
  showNames();
  repaint();
  root.dataset.ready = String(Math.round(performance.now() - started));
  window.bicliqueMap = Object.freeze({
    where: (i) => where(i).map((value) => value / ratio()),
    selected: () => (chosen ? count(chosen) : 0),
    marks: () => stacks.map((one) => one.count),
    labels: () => boxes.map(([x, y, half]) => [x, y, half].map((value) => value / ratio())),
    draw,
  });
})();
