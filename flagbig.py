import numpy as np, warnings
from sklearn.metrics import adjusted_rand_score as ari
from sklearn.preprocessing import scale
from sklearn.cluster import KMeans
from biclique import BicliqueSpectralClustering as B
for n,k,d in ((6000,3,5),(6000,4,6),(150,3,5),(600,2,4),(600,5,6)):
    r=np.random.default_rng(0); y=r.integers(k,size=n); X=scale(np.c_[4*np.eye(d)[y]+r.normal(size=(n,d)),r.random(n)<.5])
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always"); m=B(n_clusters=k,random_state=0).fit(X)
    print(n,k,d,"default",round(ari(y,m.labels_),3),"km",round(ari(y,KMeans(k,n_init=10,random_state=0).fit_predict(X)),3),m.plan_.gamma_reason[:6],len(w),flush=True)
