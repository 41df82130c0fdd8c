// Asks for what people wait for, the last page of their room, while the modules are still on their way. No module itself,
// so that it waits for none; `Api` takes the answer.

{
  const query = new URLSearchParams(location.search);
  const token = query.get('token') ?? sessionStorage.getItem('ferry.token');
  const name = query.get('name') ?? localStorage.getItem('ferry.name');
  const room = query.get('room') ?? localStorage.getItem('ferry.room') ?? 'lobby';
  if (token && name) {
    const url = `/v1/rooms/${encodeURIComponent(room)}/messages?${new URLSearchParams({ limit: '50', user: name })}`;
    const answer = fetch(url, { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store' });
    answer.catch(() => {});
    window.early = { url, token, answer };
  }
}
